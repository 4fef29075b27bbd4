//! All submissions that match a filter and wait are held, released or moved.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Outcome, label};
use crate::{
    api::{Api, Call},
    clean, document,
    error::Error,
    options::Target,
    screen::{self, note},
};

/// A submission must match all of them. An option of the command for the queue belongs to the group.
#[derive(Debug, Args)]
#[group(id = "criteria", multiple = true)]
pub(super) struct Criteria {
    /// All that wait.
    #[arg(long)]
    all: bool,
    /// All of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// All in this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// All of this user.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// All whose name has this prefix.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// All with this label; may be repeated, all labels must match.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
}

impl Criteria {
    /// Returns the filter of the request.
    pub(super) fn filter(&self, queue: Option<&String>) -> Value {
        let Self { all, tenant, namespace, owner, name, labels } = self;
        let fields = [
            ("queue", queue),
            ("tenant", tenant.as_ref()),
            ("namespace", namespace.as_ref()),
            ("owner", owner.as_ref()),
        ];
        let fields = fields.into_iter().chain([("name", name.as_ref())]);
        let mut filter: serde_json::Map<String, Value> =
            fields.filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect();
        if !labels.is_empty() {
            filter.insert("labels".to_owned(), labels.iter().cloned().collect());
        }
        if *all {
            filter.insert("state".to_owned(), json!(["QUEUED", "LAUNCHING"]));
        }
        filter.into()
    }
}

/// What became of the submissions.
#[derive(Default, Serialize, Deserialize)]
struct Places {
    changed: u64,
    #[serde(default)]
    ids: Vec<String>,
    #[serde(default)]
    refused: u64,
    #[serde(default)]
    refusals: Vec<Refusal>,
    #[serde(default, skip_serializing)]
    next: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Refusal {
    id: String,
    reason: String,
}

/// Changes all submissions that a request selects, page by page. `doing` and `done` are the words for it. Returns 1 if some can't be
/// changed.
pub(super) async fn change(api: &Api, target: &Target, (doing, done): (&str, &str), mut request: Value) -> Outcome {
    let mut all = Places::default();
    let failed = loop {
        match next(api, doing, &request).await {
            Ok(page) => {
                all.changed += page.changed;
                all.refused += page.refused;
                all.ids.extend(page.ids);
                all.refusals.extend(page.refusals);
                match page.next {
                    Some(cursor) => request["cursor"] = cursor.into(),
                    None => break None,
                }
            }
            // What was done is printed before the error.
            Err(error) => break Some(error),
        }
    };
    if failed.is_none() || all.changed + all.refused > 0 {
        if target.is_document() {
            let written = serde_json::to_vec(&all).unwrap_or_default();
            target.document(&written)?;
        } else {
            let noun = if all.changed == 1 { "submission" } else { "submissions" };
            screen::line(&format!("{} {noun} {done}", all.changed))?;
        }
        for Refusal { id, reason } in &all.refusals {
            note(&format!("error: {}: {}", clean::line(id), clean::line(reason)));
        }
    }
    failed.map_or_else(|| Ok(u8::from(all.refused > 0)), Err)
}

async fn next(api: &Api, doing: &str, request: &Value) -> Result<Places, Error> {
    let call = Call::replace(format!("{doing} submissions"), &["queue-places"], request.to_string());
    let answer = api.send(&call).await?;
    document::read(call.action(), &answer.body)
}
