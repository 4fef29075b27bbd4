//! GET of one object or of a list, in pages that all show the same version.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::call::{Call, answer, list_answer};
use super::super::failure::{Answer, Failure};
use super::super::object::{Key, Object};
use super::super::selector::Selection;
use super::super::store::State;

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.";

pub(in super::super) fn get(call: &Call) -> Answer<Response> {
    let (key, version) = (call.key()?, call.options.version()?);
    let object = call.server.store.read(|state| {
        check_not_ahead(state, version)?;
        state.get(&key).cloned().ok_or_else(|| Failure::not_found(call.target.resource, &key.name))
    })?;
    Ok(answer(StatusCode::OK, &object))
}

/// A continue token: where the next page begins, and the version of the list. Opaque to clients.
#[derive(Debug, Serialize, Deserialize)]
struct Continue {
    version: u64,
    namespace: String,
    name: String,
}

impl Continue {
    fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(json!(self).to_string())
    }

    fn decode(token: &str) -> Answer<Self> {
        let wrong =
            |why: String| Failure::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let json = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_slice(&json).map_err(|error| wrong(error.to_string()))
    }
}

pub(in super::super) fn list(call: &Call) -> Answer<Response> {
    let (selection, options) = (Selection::new(&call.target, &call.options)?, &call.options);
    let version = options.version()?;
    let limit = usize::try_from(options.integer("limit")?.unwrap_or(0)).unwrap_or(0);
    let from = match options.text("continue") {
        "" => None,
        _ if version.is_some_and(|version| version > 0) => {
            return Err(Failure::bad_request("specifying resource version is not allowed when using continue"));
        }
        token => Some(Continue::decode(token)?),
    };
    let exact = match options.text("resourceVersionMatch") {
        "" | "NotOlderThan" => None,
        "Exact" => version,
        other => return Err(Failure::bad_request(format!("resourceVersionMatch: Unsupported value: \"{other}\""))),
    };
    let asked = exact.or_else(|| from.as_ref().map(|from| from.version));
    let (version, found) = call.server.store.read(|state| {
        check_not_ahead(state, version.max(asked))?;
        let version = asked.unwrap_or_else(|| state.version());
        Ok::<_, Failure>((version, matching(state, &selection, version)?))
    })?;
    let start = from.map_or(0, |from| {
        let from = Key::new(selection.resource, &from.namespace, &from.name);
        found.partition_point(|object| object.key() <= from)
    });
    let rest = &found[start..];
    let page = if limit == 0 { rest } else { &rest[..limit.min(rest.len())] };
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if let (Some(last), true) = (page.last(), page.len() < rest.len()) {
        let Key { namespace, name, .. } = last.key();
        metadata["continue"] = Continue { version, namespace, name }.encode().into();
        if selection.takes_all() {
            metadata["remainingItemCount"] = (rest.len() - page.len()).into();
        }
    }
    Ok(list_answer(selection.resource, &metadata, page.iter().map(|object| &object.json)))
}

/// Returns the selected objects as they were at a version.
fn matching(state: &State, selection: &Selection, version: u64) -> Answer<Vec<Arc<Object>>> {
    if version == state.version() {
        let all = state.all(selection.resource, selection.namespace.as_deref());
        return Ok(all.filter(|object| selection.matches(object)).cloned().collect());
    }
    let then = state.at(version, selection.resource).ok_or_else(|| Failure::expired(TOO_OLD))?;
    Ok(then.into_values().filter(|object| selection.matches(object)).collect())
}

fn check_not_ahead(state: &State, version: Option<u64>) -> Answer<()> {
    match version {
        Some(version) if version > state.version() => Err(Failure::version_too_large(version, state.version())),
        _ => Ok(()),
    }
}
