//! PATCH bodies, by their media type.

mod json;
mod strategic;

use serde_json::Value;

use super::call::Call;
use super::failure::{Answer, Cause, Failure};
use super::object::text;

/// A patch that has been parsed but not yet applied.
#[derive(Debug)]
pub(super) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
    /// Server-side apply, as create-or-merge: the sandbox does not track the owners of fields, so it neither detects conflicts
    /// nor removes fields that an earlier apply has set.
    Apply(Value),
}

impl Patch {
    /// Parses a patch.
    ///
    /// # Errors
    /// The media type is not that of a patch, or the body does not match it.
    pub(super) fn parse(call: &Call) -> Answer<Self> {
        match call.media_type() {
            "application/json-patch+json" => json::parse(call.json()?).map(Self::Json),
            "application/merge-patch+json" => call.json().map(Self::Merge),
            "application/strategic-merge-patch+json" => call.json().map(Self::Strategic),
            "application/apply-patch+yaml" => {
                let body = call.json()?;
                check_apply(call, &body)?;
                Ok(Self::Apply(body))
            }
            _ => Err(Failure::unsupported_media_type("415: Unsupported Media Type")),
        }
    }

    /// Returns whether a missing object is created.
    pub(super) fn is_apply(&self) -> bool {
        matches!(self, Self::Apply(_))
    }

    /// Applies the patch to a copy of the object.
    ///
    /// # Errors
    /// A JSON patch can't be applied to the object.
    pub(super) fn apply_to(&self, current: &Value) -> Answer<Value> {
        let mut patched = current.clone();
        match self {
            Self::Json(patch) => json::apply(&mut patched, patch)?,
            Self::Merge(patch) => json_patch::merge(&mut patched, patch),
            Self::Strategic(patch) | Self::Apply(patch) => strategic::merge(&mut patched, patch),
        }
        Ok(patched)
    }
}

fn check_apply(call: &Call, body: &Value) -> Answer<()> {
    if call.options.text("fieldManager").is_empty() {
        return Err(Failure::missing_field_manager(Cause::required("fieldManager", "is required for apply patch")));
    }
    if text(body, "/kind").is_empty() || text(body, "/apiVersion").is_empty() {
        return Err(Failure::bad_request("invalid object type: /, Kind="));
    }
    let key = call.key()?;
    match text(body, "/metadata/name") {
        "" => Err(Failure::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            key.name
        ))),
        name if name == key.name => Ok(()),
        name => Err(Failure::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        ))),
    }
}
