//! The Spark UI of drivers, below a path with a ticket: `/v1/ui/{id}/{ticket}/`.
//!
//! A driver is arbitrary code, and so are its pages. Each of its responses has a policy that puts a page into an origin of its own
//! (`sandbox`), so that it reaches neither the console nor the API as its reader. Such a page has no cookies, and its requests count
//! as those of another site. That is why they need nothing but the ticket, and why these paths are in front of authentication and of
//! the checks of [`sparkgate_web::browser`].

mod html;
pub(super) mod page;
mod request;
mod response;

use axum::{
    Extension,
    body::to_bytes,
    extract::{Request, State},
    http::{Method, StatusCode, header, request::Parts},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::any,
};
use tower_http::cors::{Any, CorsLayer};

use super::v1::{middleware::answer as problem_document, spark_ui::no_ui};
use request::{Target, prefix};
use response::Sent;
use sparkgate_server::Peer;
use sparkgate_service::{Asked, JobKill, KillPermission, SparkUi, Ticket, TicketFault, UiHost, UiPlace};
use sparkgate_web::{
    compression::compress,
    fetch_metadata::{is_part_of_foreign_page, is_part_of_own_page, wants_page},
    host::host,
    id::not_found,
    problem::{Code, Problem},
    request_log::{self, RequestId},
    routes::{Route, Routes},
    state::AppState,
    time_limit::answered_within,
};

use page::{ended, not_up};

/// The segment of a path that is the ticket.
const TICKET: usize = 4;
/// The most bytes of a form of a driver's page.
const FORM: usize = 64 << 10;

/// Returns the routes of the UIs of drivers. A ticket is a credential.
pub(super) fn routes() -> Routes {
    Routes::default()
        .route("/v1/ui/{id}/{ticket}", any(serve))
        .secret(TICKET)
        .route("/v1/ui/{id}/{ticket}/", any(serve))
        .secret(TICKET)
        .route("/v1/ui/{id}/{ticket}/{*path}", any(serve))
        .secret(TICKET)
}

/// Returns the same with all that a request passes.
pub(super) fn router(state: AppState) -> Routes<()> {
    // The ticket is the credential: no other one is used, or accepted, and a page of an origin of its own has to be allowed to read.
    let cors =
        CorsLayer::new().allow_origin(Any).allow_methods([Method::GET, Method::HEAD, Method::POST]).allow_headers(Any);
    routes().map(|router| router.layer(cors).layer(from_fn(compress))).with_state(state)
}

async fn serve(State(state): State<AppState>, Extension(id): Extension<RequestId>, request: Request) -> Response {
    let path = Route::of(&request).loggable(request.uri().path()).into_owned();
    let is_page = asks_for_page(&request);
    answer(&state, request).await.unwrap_or_else(|problem| refused(problem, &path, is_page, &id))
}

/// Lets the host of UIs serve nothing but these.
pub(super) async fn keep_apart(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    if host_of_uis(&state, &request).is_none() {
        return next.run(request).await;
    }
    let problem = Problem::new(Code::NotFound, "This host serves the Spark UIs of drivers, and nothing else.");
    let path = Route::of(&request).loggable(request.uri().path()).into_owned();
    refused(problem, &path, asks_for_page(&request), &id)
}

/// Returns whose UIs the host of a request serves; `None` if it is the gateway's own.
fn host_of_uis(state: &AppState, request: &Request) -> Option<UiHost> {
    state.service.spark_ui.origin()?.at(&host(request)?)
}

fn asks_for_page(request: &Request) -> bool {
    wants_page(request.headers()) && request.method() == Method::GET
}

fn refused(problem: Problem, path: &str, is_page: bool, id: &RequestId) -> Response {
    if is_page {
        problem.log();
        return page::problem(&page::Shown {
            status: problem.code.status(),
            title: problem.code.title(),
            detail: &problem.detail,
            request_id: request_log::text(id),
            retry_after: problem.retry_after,
            console: None,
        });
    }
    problem_document(&problem, path, id)
}

async fn answer(state: &AppState, request: Request) -> Result<Response, Problem> {
    let (is_page, at) = (asks_for_page(&request), host_of_uis(state, &request));
    let (parts, body) = request.into_parts();
    let is_of_one = matches!(at, Some(UiHost::Of(_)));
    // Pages of drivers are in origins of their own: by their policy, or by their host.
    let is_foreign = match is_of_one {
        true => is_part_of_foreign_page(&parts.headers),
        false => is_part_of_own_page(&parts.headers),
    };
    if is_foreign {
        let detail = "Only pages of the same driver may load what a driver serves.";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let target = Target::of(&parts.uri).ok_or_else(|| no_ui("There is nothing at this path."))?;
    let ui = &state.service.spark_ui;
    // Authentication asks the reader's browser for credentials again, and this is continued with another ticket, at its place.
    let way_back = match &at {
        None => Some(target.way_back()),
        Some(_) => state.service.authenticator.external_url().map(|url| target.way_back_at(&url)),
    };
    let way_back = way_back.filter(|_| is_page);
    let is_here = at.map_or_else(|| ui.origin().is_none(), |at| at.serves(&target.id));
    let ticket = ui.check(&target.id, target.ticket);
    if let (Some(way_back), false) = (way_back, ticket == Err(TicketFault::Forged) || is_here && ticket.is_ok()) {
        return Ok(elsewhere(&way_back));
    }
    let ticket = match ticket {
        Ok(ticket) if is_here => ticket,
        Ok(_) => return Err(no_ui(&format!("This Spark UI is at another host: {}", target.advice()))),
        Err(TicketFault::Expired) => {
            return Err(no_ui(&format!("This URL has expired: {}", target.advice())));
        }
        Err(TicketFault::Forged) => {
            return Err(no_ui(&format!("The URL isn't one of this gateway: {}", target.advice())));
        }
    };
    match parts.method {
        Method::GET | Method::HEAD => {}
        // Spark's pages send no other forms than these.
        Method::POST if target.is_kill => {}
        _ => {
            let detail = format!("A Spark UI doesn't take {} here.", parts.method);
            return Err(Problem::new(Code::MethodNotAllowed, detail));
        }
    }
    let form = answered_within(state.settings.request_timeout, to_bytes(body, FORM)).await?;
    let form = form.map_err(|_| Problem::new(Code::RequestTooLarge, format!("A form has at most {FORM} bytes.")))?;
    if target.is_kill {
        permit_kill(ui, &ticket, &target, &parts, &form).await?;
    }
    let prefix = prefix(&parts.headers);
    let base = format!("{prefix}{}", target.base);
    let asked = ui.ask(&ticket, request::for_driver(&parts, &target, &base, form)?).await?;
    if target.is_kill && matches!(asked, Asked::Answered(_)) {
        let by = ticket.principal.as_deref();
        tracing::info!(submission = %ticket.id, path = target.path, by, "kill of a job or stage sent to the driver");
    }
    match asked {
        Asked::Answered(answer) => {
            let sent = Sent { method: &parts.method, path: target.path, base: &base, is_of_one };
            response::from_driver(answer, &sent).ok_or_else(|| {
                let detail = "The driver sent a response that can't be passed on.";
                Problem::new(Code::SparkUiUnavailable, detail)
            })
        }
        Asked::Ended(UiPlace::History(url)) if is_page => Ok(elsewhere(&url)),
        Asked::Ended(UiPlace::History(url)) => Err(no_ui(&format!("The submission has ended: see {url}"))),
        Asked::Ended(_) if is_page => Ok(ended(&target.id)),
        Asked::Ended(_) => Err(no_ui("The submission has ended, and its driver with it.")),
        Asked::Gone => Err(not_found(&target.id)),
        Asked::NotUp(why) if is_page => Ok(not_up(&why)),
        Asked::NotUp(why) => {
            Err(Problem::new(Code::SparkUiUnavailable, format!("The Spark UI doesn't answer: {why}.")))
        }
        Asked::Busy => Err(Problem::new(Code::TooManyRequests, "Too many requests to Spark UIs are under way.")),
    }
}

/// Checks that a kill of a job or a stage may be sent to the driver.
async fn permit_kill(
    ui: &SparkUi,
    ticket: &Ticket,
    target: &Target<'_>,
    parts: &Parts,
    form: &[u8],
) -> Result<(), Problem> {
    let request_id = parts.extensions.get::<RequestId>().map_or("", request_log::text);
    let kill = JobKill {
        path: target.path,
        query: parts.uri.query(),
        form,
        address: parts.extensions.get::<Peer>().map(Peer::client),
        request_id,
    };
    match ui.permit_kill(ticket, &kill).await? {
        KillPermission::Granted => Ok(()),
        KillPermission::Denied => {
            let detail = "Who may kill the submission may kill its jobs and stages, and no other caller.";
            Err(Problem::new(Code::Denied, detail))
        }
        KillPermission::TooMany => {
            let detail = "Jobs and stages of this submission are killed too often: one for each second.";
            Err(Problem::new(Code::TooManyRequests, detail))
        }
    }
}

fn elsewhere(location: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, location), (header::CACHE_CONTROL, "no-store")]).into_response()
}
