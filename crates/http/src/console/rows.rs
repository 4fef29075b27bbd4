//! The live parts of the list, which open pages ask for again after a change. Hundreds of pages do so at the same time, so one read
//! serves those that show the same submissions, and one rendering those that may kill the same of them.

use std::{
    collections::HashMap,
    io::Write,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use axum::{
    extract::{Extension, State},
    http::{HeaderMap, HeaderValue, Uri, header},
    response::Response,
};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use flate2::{Compression, write::GzEncoder};
use maud::{DOCTYPE, Markup, html};

use super::{
    chart::executor_bar,
    form,
    layout::{badge, word},
    page::with_headers,
    shared_reads::SharedReads,
    text::{ago, cut, lasted},
    waiting,
};
use crate::v1::submissions::{ListQuery, Listed, list_page};
use sparkgate_service::{FailureReason, Scope, Session, Submission};
use sparkgate_submission::{State as SubmissionState, SubmissionId};
use sparkgate_web::{
    compression::takes_gzip, problem::Problem, query::read as read_query, session::Caller, state::AppState,
};

/// The reads under way.
#[derive(Clone, Default)]
pub(super) struct Reads(Arc<SharedReads<Key, Result<Arc<Read>, Problem>>>);

/// Whose submissions a read may return, and the query for them.
type Key = (Scope, String);

/// A page of the list as it was read.
pub(super) struct Read {
    /// The number of the newest event before.
    pub(super) after: i64,
    found: Listed,
    /// How many are admitted before those that wait in queues.
    positions: HashMap<SubmissionId, u32>,
    at: DateTime<Utc>,
    /// The parts as they are sent.
    written: Mutex<HashMap<Look, Arc<Written>>>,
}

/// What the parts depend on besides the read.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Look {
    /// Whether there is a column for the tenants.
    has_tenants: bool,
    /// Which submissions the caller may kill, in the order of the page.
    killable: Vec<bool>,
}

impl Reads {
    /// Reads the page of the list that a query asks for, which has no empty parameters. It has all changes that were committed before
    /// this call.
    pub(super) async fn read(&self, state: &AppState, caller: &Session, query: &str) -> Result<Arc<Read>, Problem> {
        let key = (caller.readable(), query.to_owned());
        let (state, caller, query) = (state.clone(), caller.clone(), query.to_owned());
        let read = async move {
            let parameters: ListQuery = read_query(&query)?;
            // Before the list, so that no change is missed: one that the list has already is shown again and changes nothing.
            let after = state.service.events.newest().await?;
            let found = list_page(&state, &caller, parameters).await?;
            let positions = state.service.queues.positions(&found.page.items).await?;
            Ok(Arc::new(Read { after, found, positions, at: Utc::now(), written: Mutex::default() }))
        };
        self.0.get(key, read).await
    }
}

/// The parts of the page that change.
pub(super) struct Parts {
    pub(super) rows: Markup,
    pub(super) empty: Markup,
    pub(super) pages: Markup,
}

impl Read {
    /// Renders the parts for a caller.
    pub(super) fn parts(&self, query: &str, caller: &Session) -> Parts {
        self.rendered(query, &self.look(caller))
    }

    fn look(&self, caller: &Session) -> Look {
        let killable = caller.killable();
        let killable = self.found.page.items.iter().map(|item| killable.covers(&item.tenant, &item.principal));
        Look { has_tenants: caller.tenants().len() > 1, killable: killable.collect() }
    }

    fn rendered(&self, query: &str, look: &Look) -> Parts {
        let items = &self.found.page.items;
        let is_first = form::values(query, "cursor").is_empty();
        let rows = html! {
            tbody #rows data-live {
                @for (item, may_kill) in items.iter().zip(&look.killable) {
                    (row(item, self.positions.get(&item.id).copied(), look.has_tenants, *may_kill, self.at))
                }
            }
        };
        let empty = html! {
            div #empty data-live {
                @if items.is_empty() {
                    p.nothing {
                        @if query.is_empty() {
                            "No submissions yet. " code { "POST /v1/submissions" } " or " code { "spark-submit" } " makes the first one."
                        } @else { "No submission matches this filter. " a href="submissions" { "Show all" } }
                    }
                }
            }
        };
        let pages = html! {
            nav #pages data-live aria-label="Pages" {
                @if !is_first { a.button href={ "submissions?" (form::with(query, &[])) } { "Newest" } }
                @if let Some(next) = &self.found.next { a.button rel="next" href={ "submissions?" (form::with(query, &[("cursor", next)])) } { "Older" } }
            }
        };
        Parts { rows, empty, pages }
    }

    /// Returns the parts for a caller as a document.
    fn document(&self, query: &str, caller: &Session) -> Arc<Written> {
        let look = self.look(caller);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let written = written.entry(look).or_insert_with_key(|look| {
            let Parts { rows, empty, pages } = self.rendered(query, look);
            let document = html! {
                (DOCTYPE)
                html lang="en" {
                    head { title { "Submissions · Sparkgate" } }
                    body data-events="" data-after=(self.after) { table { (rows) } (empty) (pages) }
                }
            };
            Arc::new(Written { text: document.into_string().into(), gzip: OnceLock::new() })
        });
        written.clone()
    }
}

/// A document, which is compressed once.
struct Written {
    text: Bytes,
    gzip: OnceLock<Option<Bytes>>,
}

impl Written {
    fn gzip(&self) -> Option<Bytes> {
        let compressed = self.gzip.get_or_init(|| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&self.text).ok()?;
            encoder.finish().ok().map(Bytes::from)
        });
        compressed.clone()
    }
}

/// Answers an open page.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Extension(reads): Extension<Reads>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = form::filled(uri.query().unwrap_or_default());
    let document = reads.read(&state, &caller, &query).await?.document(&query, &caller);
    let gzip = takes_gzip(&headers).then(|| document.gzip()).flatten();
    let is_compressed = gzip.is_some();
    let mut response = with_headers(gzip.unwrap_or_else(|| document.text.clone()));
    if is_compressed {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn row(item: &Submission, ahead: Option<u32>, has_tenants: bool, may_kill: bool, now: DateTime<Utc>) -> Markup {
    let id = item.id.as_str();
    let why = FailureReason::of(item);
    let is_over = item.state.is_terminal();
    html! {
        tr id=(id) {
            td.pick {
                @if may_kill && !is_over { input type="checkbox" name="id" value=(id) form="kill" aria-label={ "Select " (id) }; }
            }
            td.status { (badge(item.state)) }
            td.name {
                a href={ "submissions/" (id) } { @if item.name.is_empty() { "(no name)" } @else { (word(&item.name)) } }
                span.id { (id) }
            }
            td.who { (word(&item.owner)) }
            @if has_tenants { td.tenant { (word(&item.tenant)) } }
            td.age { (ago(item.created_at, now)) }
            td.took { @if let Some(started) = item.started_at { (lasted(started, item.finished_at, now)) } }
            td.executors { (executor_bar(&item.executors)) }
            td.code {
                @if let Some(place) = waiting::in_list(item, ahead) { (place) }
                @else if let Some(why) = why.filter(|_| item.state != SubmissionState::Killing) {
                    span title=(cut(&why.message, 500)) { (why.code.as_str()) }
                }
                @if item.attempt > 1 { span.attempt { "attempt " (item.attempt) } }
            }
        }
    }
}
