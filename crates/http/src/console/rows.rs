//! The live parts of the list, which open pages ask for again after a change. Hundreds of pages do so at the same time, so one read
//! serves those that show the same submissions, and one rendering those that may kill the same of them.

use std::{
    collections::HashMap,
    io::Write,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
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
use tokio::time::timeout;

use super::{
    chart::executor_bar,
    filters, form,
    layout::{badge, word},
    names::Names,
    page::with_headers,
    shared_reads::SharedReads,
    text::{ago, cut, lasted, visible},
    waiting,
};
use crate::v1::submissions::{ListQuery, Listed, list_page};
use sparkgate_access::Provider;
use sparkgate_service::{FailureReason, Filter, Scope, Session, StateCounts, Submission};
use sparkgate_submission::{State as SubmissionState, SubmissionId, headline_of_row};
use sparkgate_web::{
    compression::takes_gzip, problem::Problem, query::read as read_query, session::Caller, state::AppState,
};

/// How long a list waits for the counts of its tabs.
const PATIENCE: Duration = Duration::from_millis(300);
/// The longest cause in a row, in bytes.
const CAUSE: usize = 300;
/// The most labels in a row, and the longest of them in bytes.
const LABELS: usize = 3;
const LABEL: usize = 40;

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
    /// How many there are in each state; `None` if counting takes too long.
    counts: Option<StateCounts>,
    names: Names,
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
    /// Whether there is one for the queues.
    has_queues: bool,
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
            // The tabs are those of the other filters.
            let filter = Filter { states: Vec::new(), ..read_query::<ListQuery>(&query)?.filter() };
            let counts = timeout(PATIENCE, state.service.submissions.count_states(&caller, &filter));
            let (found, counts) = tokio::join!(list_page(&state, &caller, parameters), counts);
            let found = found?;
            let items = &found.page.items;
            let positions = state.service.queues.positions(items).await?;
            let asked = form::values(&query, "principal");
            let subjects = items.iter().map(|item| item.principal.as_str()).chain(asked.iter().map(String::as_str));
            let names = state.service.api_keys.names(subjects).await.into();
            let counts = counts.ok().and_then(Result::ok);
            Ok(Arc::new(Read { after, found, counts, names, positions, at: Utc::now(), written: Mutex::default() }))
        };
        self.0.get(key, read).await
    }
}

/// The parts of the page that change, and which columns the rows have.
pub(super) struct Parts {
    pub(super) tabs: Markup,
    pub(super) has_tenants: bool,
    pub(super) has_queues: bool,
    pub(super) rows: Markup,
    pub(super) empty: Markup,
    pub(super) pages: Markup,
}

impl Read {
    /// Renders the parts for a caller.
    pub(super) fn parts(&self, query: &str, caller: &Session) -> Parts {
        self.rendered(query, &self.look(caller))
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    fn look(&self, caller: &Session) -> Look {
        let killable = caller.killable();
        let killable = self.found.page.items.iter().map(|item| killable.covers(&item.tenant, &item.principal));
        Look {
            has_tenants: caller.tenants().len() > 1,
            has_queues: !caller.queues().is_empty(),
            killable: killable.collect(),
        }
    }

    fn rendered(&self, query: &str, look: &Look) -> Parts {
        let items = &self.found.page.items;
        let is_first = form::values(query, "cursor").is_empty();
        let rows = html! {
            tbody #rows data-live {
                @for (item, may_kill) in items.iter().zip(&look.killable) {
                    (self.row(item, look, *may_kill, query))
                }
            }
        };
        let empty = html! {
            div #empty data-live {
                @if items.is_empty() {
                    p.nothing {
                        @if query.is_empty() {
                            "No submissions yet. " code { "POST /v1/submissions" } " or " code { "spark-submit" } " makes the first one."
                        } @else if self.found.next.is_some() {
                            "None of the newest that this page looked through matches this filter: go on with the older ones."
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
        let tabs = filters::tabs(query, self.counts.as_ref());
        Parts { tabs, rows, empty, pages, has_tenants: look.has_tenants, has_queues: look.has_queues }
    }

    fn row(&self, item: &Submission, look: &Look, may_kill: bool, query: &str) -> Markup {
        let id = item.id.as_str();
        let why = FailureReason::of(item);
        let is_over = item.state.is_terminal();
        let cause = why.as_ref().filter(|_| is_over).map(|why| why.message.as_str());
        html! {
            tr id=(id) {
                td.pick {
                    @if may_kill && !is_over { input type="checkbox" name="id" value=(id) form="kill" aria-label={ "Select " (id) }; }
                }
                td.status { (badge(item.state)) }
                td.name {
                    a href={ "submissions/" (id) } { @if item.name.is_empty() { "(no name)" } @else { (word(&item.name)) } }
                    span.id { (id) }
                    (labels(item, query))
                    @if let Some(cause) = cause { p.cause title=(cut(cause, 2000)) { (word(&cut(headline_of_row(cause), CAUSE))) } }
                }
                td.who { (self.by(item, query)) }
                @if look.has_tenants { td.tenant { (word(&item.tenant)) } }
                @if look.has_queues { td.queue { @if let Some(queue) = &item.queue { (word(queue)) } } }
                td.age { (ago(item.created_at, self.at)) }
                td.took { @if let Some(started) = item.started_at { (lasted(started, item.finished_at, self.at)) } }
                td.executors { (executor_bar(&item.executors)) }
                td.code {
                    @if let Some(place) = waiting::in_list(item, self.positions.get(&item.id).copied()) { (place) }
                    @else if let Some(why) = why.filter(|_| item.state != SubmissionState::Killing) {
                        span title=(cut(&why.message, 500)) { (why.code.as_str()) }
                    }
                    @if item.attempt > 1 { span.attempt { "attempt " (item.attempt) } }
                }
            }
        }
    }

    /// Who submitted it, and the owner if the request names another one. Without authentication the owner alone says something.
    fn by(&self, item: &Submission, query: &str) -> Markup {
        if Provider::Anonymous.prefix() == item.principal.split(':').next().unwrap_or_default() {
            return word(&item.owner);
        }
        let (subject, name) = (item.principal.as_str(), self.names.of(&item.principal));
        let of_principal = form::with(query, &[("principal", subject)]);
        html! {
            a href={ "submissions?" (of_principal) } title={ "Submissions of " (visible(subject)) } { (word(name)) }
            @if ![name, subject].contains(&item.owner.as_str()) { span.owner title="Owner" { (word(&item.owner)) } }
        }
    }

    /// Returns the parts for a caller as a document.
    fn document(&self, query: &str, caller: &Session) -> Arc<Written> {
        let look = self.look(caller);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let written = written.entry(look).or_insert_with_key(|look| {
            let Parts { tabs, rows, empty, pages, .. } = self.rendered(query, look);
            let document = html! {
                (DOCTYPE)
                html lang="en" {
                    head { title { "Submissions · Sparkgate" } }
                    body data-events="" data-after=(self.after) { (tabs) table { (rows) } (empty) (pages) }
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

/// The labels, each a link to the submissions that have it.
fn labels(item: &Submission, query: &str) -> Markup {
    let more: Vec<String> = item.labels.iter().skip(LABELS).map(|(key, value)| format!("{key}={value}")).collect();
    html! {
        @for (key, value) in item.labels.iter().take(LABELS) {
            @let label = format!("{key}={value}");
            a.label href={ "submissions?" (form::and(query, "label", &label)) } title=(cut(&label, 500)) { (word(&cut(&label, LABEL))) }
        }
        @if !more.is_empty() { span.label title=(cut(&more.join(", "), 500)) { "+" (more.len()) } }
    }
}
