//! A change as the API tells it.

use chrono::SecondsFormat;
use serde::Serialize;
use utoipa::ToSchema;

use super::model::State;
use crate::service::Change;

/// One change of a submission's state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct Event<'a> {
    /// Its place in the order of all changes, which `after` and `Last-Event-ID` name. The newest ones have none for a
    /// moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 17)]
    sequence: Option<i64>,
    #[schema(example = "driver-20260102030405-0000")]
    submission_id: &'a str,
    #[schema(example = 1)]
    attempt: i32,
    #[schema(value_type = State)]
    state: &'a str,
    /// The state before it; the first one has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<State>)]
    previous: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[schema(format = DateTime, example = "2026-11-21T13:40:05.123Z")]
    at: String,
}

impl<'a> Event<'a> {
    pub(super) fn of(change: &'a Change) -> Self {
        Self {
            sequence: change.sequence,
            submission_id: &change.submission_id,
            attempt: change.attempt,
            state: &change.state,
            previous: change.previous.as_deref(),
            reason: change.reason.as_deref(),
            message: change.message.as_deref(),
            at: change.at.to_rfc3339_opts(SecondsFormat::Millis, true),
        }
    }
}

/// Some changes, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct EventList<'a> {
    items: Vec<Event<'a>>,
    /// The `after` of the next page. Of one submission there is none after the last page; of all there is always one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "17")]
    next: Option<String>,
}

impl<'a> EventList<'a> {
    pub(super) fn new(items: impl IntoIterator<Item = &'a Change>, next: Option<i64>) -> Self {
        Self { items: items.into_iter().map(Event::of).collect(), next: next.map(|next| next.to_string()) }
    }
}
