//! State changes as the API represents them.

use chrono::SecondsFormat;
use serde::Serialize;
use utoipa::ToSchema;

use super::model::State;
use crate::service;

/// One change of a submission's state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct Event<'a> {
    /// The event's position in the order of all events, for `after` and `Last-Event-ID`. It is assigned shortly after the
    /// commit, so the newest events may not have one yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 17)]
    sequence: Option<i64>,
    #[schema(example = "driver-20260102030405-0000")]
    submission_id: &'a str,
    #[schema(example = 1)]
    attempt: i32,
    #[schema(value_type = State)]
    state: &'a str,
    /// The previous state. The first event has none.
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
    pub(super) fn of(change: &'a service::Event) -> Self {
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

/// Events, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct EventList<'a> {
    items: Vec<Event<'a>>,
    /// The `after` of the next page. The last page of one submission's events has none; a page of all events always has
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "17")]
    next: Option<String>,
}

impl<'a> EventList<'a> {
    pub(super) fn new(items: impl IntoIterator<Item = &'a service::Event>, next: Option<i64>) -> Self {
        Self { items: items.into_iter().map(Event::of).collect(), next: next.map(|next| next.to_string()) }
    }
}
