//! The form that holds, releases or moves all submissions that a filter of the list selects and that wait.

use axum::{
    extract::{Request, State},
    response::Response,
};
use maud::{Markup, html};

use super::{
    form,
    layout::{Frame, Section, word},
    page::page,
};
use crate::{
    queue_state::REASON,
    v1::{
        queues::places::{change, change_places},
        submissions::ListQuery,
    },
};
use sparkgate_service::{PlaceChange, PlacesChanged, Session};
use sparkgate_submission::queues::PRIORITIES;
use sparkgate_web::{
    problem::{Code, Problem},
    query::read as read_query,
    session::Caller,
    state::AppState,
};

/// Shows the form below a list with this filter, if the caller may change submissions. The filter is that of the list's address.
pub(super) fn section(query: &str, caller: &Session) -> Option<Markup> {
    let filter = form::with(query, &[]);
    if filter.is_empty() || caller.killable().is_empty() {
        return None;
    }
    let queues = caller.queues();
    Some(html! {
        details.change {
            summary { "Change all that wait and match this filter" }
            form.line method="post" action="submissions/places" {
                input type="hidden" name="filter" value=(filter);
                input name="reason" maxlength=(REASON) placeholder="Why, for people" aria-label="Reason of the hold";
                button name="action" value="hold" { "Hold all" }
                button name="action" value="release" { "Release all" }
                @if !queues.is_empty() {
                    select name="queue" aria-label="Queue to move to" {
                        option value="" { "Same queue" }
                        @for queue in queues { option value=(queue.name) { (word(&queue.name)) } }
                    }
                    input name="priority" type="number" min=(PRIORITIES.start()) max=(PRIORITIES.end()) placeholder="Priority" aria-label="New priority";
                    button name="action" value="move" { "Move all" }
                }
            }
        }
    })
}

/// Changes the submissions that a form selects, and shows what became of them.
pub(super) async fn change_all(
    State(state): State<AppState>,
    Caller(caller): Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let fields = form::read(&parts.headers, body).await?;
    let value = |wanted| Some(form::field(&fields, wanted)).filter(|value| !value.is_empty());
    let (action, query) = (value("action").unwrap_or_default(), value("filter").unwrap_or_default());
    let (is_hold, is_move) = (action == "hold", action == "move");
    let priority = value("priority").filter(|_| is_move).map(str::parse).transpose();
    let priority = priority
        .map_err(|error| Problem::new(Code::InvalidRequest, format!("The priority is no whole number: {error}.")))?;
    let queue = value("queue").filter(|_| is_move).map(str::to_owned);
    let change = change(action, value("reason").filter(|_| is_hold), queue, priority)?;
    let filter = read_query::<ListQuery>(query)?.filter();
    let (done, next) = change_places(&state, &caller, (&filter, &change), value("cursor")).await?;
    let content = outcome(&done, &change, next.as_deref(), &fields);
    let path = parts.uri.path();
    let frame = Frame { title: "Places", section: Section::Submissions, path, caller: Some(&caller), live: None };
    Ok(page(frame.around(&content)))
}

fn outcome(done: &PlacesChanged, change: &PlaceChange, next: Option<&str>, fields: &[(String, String)]) -> Markup {
    let word_of = match change {
        PlaceChange::Hold { .. } => "held",
        PlaceChange::Release => "released",
        PlaceChange::Move(_) => "moved",
    };
    let back = form::field(fields, "filter");
    let count = done.changed.len();
    html! {
        section.problem {
            h1 { (count) @if count == 1 { " submission " } @else { " submissions " } (word_of) }
            @if !done.refused.is_empty() {
                p { (done.refused.len()) " can't be changed in this way:" }
                table.plain {
                    tbody {
                        @for (id, why) in &done.refused {
                            tr {
                                th scope="row" { a href={ "../submissions/" (id) } { (word(id.as_str())) } }
                                td { (word(why)) }
                            }
                        }
                    }
                }
            }
            @if let Some(next) = next {
                form.line method="post" action="places" {
                    @for (name, value) in fields.iter().filter(|(name, _)| name != "cursor") { input type="hidden" name=(name) value=(value); }
                    input type="hidden" name="cursor" value=(next);
                    button { "Go on with the next" }
                }
            }
            p.actions { a.button href={ "../submissions?" (back) } { "Back to the list" } }
        }
    }
}
