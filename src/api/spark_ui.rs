//! The Spark UI of drivers, below a path with a ticket: `/v1/ui/{id}/{ticket}/`.
//!
//! A driver is arbitrary code, and so are its pages. Each of its responses has a policy that puts a page into an origin of its own
//! (`sandbox`), so that it reaches neither the console nor the API as its reader. Such a page has no cookies, and its requests count
//! as those of another site. That is why they need nothing but the ticket, and why these paths are in front of authentication and of
//! the checks of [`super::browser`].

mod html;
pub(super) mod page;
mod request;
mod response;

use axum::{
    Extension, Router,
    body::to_bytes,
    extract::{Request, State},
    http::{Method, StatusCode, header, request::Parts},
    middleware::from_fn,
    response::{IntoResponse, Response},
    routing::any,
};
use tower_http::cors::{Any, CorsLayer};

use super::{
    AppState,
    fetch_metadata::is_part_of_own_page,
    request_log::{self, RequestId},
    route_template::loggable,
    server::Peer,
    v1::{self, Code, Problem},
};
use crate::service::{Asked, JobKill, KillPermission, SparkUi, Ticket, TicketFault, UiPlace};
use request::{Target, prefix};
use response::Sent;

use page::{ended, not_up, wants_page};

/// The most bytes of a form of a driver's page.
const FORM: usize = 64 << 10;

/// Returns the router of the UIs of drivers.
pub(super) fn router(state: AppState) -> Router {
    // The ticket is the credential: no other one is used, or accepted, and a page of an origin of its own has to be allowed to read.
    let cors =
        CorsLayer::new().allow_origin(Any).allow_methods([Method::GET, Method::HEAD, Method::POST]).allow_headers(Any);
    Router::new()
        .route("/v1/ui/{id}/{ticket}", any(serve))
        .route("/v1/ui/{id}/{ticket}/", any(serve))
        .route("/v1/ui/{id}/{ticket}/{*path}", any(serve))
        .layer(cors)
        .layer(from_fn(v1::compress))
        .with_state(state)
}

async fn serve(State(state): State<AppState>, Extension(id): Extension<RequestId>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    match answer(&state, request).await {
        Ok(response) => response,
        Err(problem) => {
            let retry = problem.retry_after;
            let mut response = v1::refused(problem.code, loggable(&path).into_owned(), problem.detail, &id);
            if let Some(seconds) = retry {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

async fn answer(state: &AppState, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let is_page = wants_page(&parts.headers) && parts.method == Method::GET;
    // Pages of drivers are in origins of their own.
    if is_part_of_own_page(&parts.headers) {
        let detail = "A page of this gateway may not load what a driver serves.";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let target = Target::of(&parts.uri).ok_or_else(|| v1::no_spark_ui("There is nothing at this path."))?;
    let ui = &state.service.spark_ui;
    let ticket = match ui.check(&target.id, target.ticket) {
        Ok(ticket) => ticket,
        // Authentication asks the reader's browser for credentials again, and this is continued with another ticket.
        Err(TicketFault::Expired) if is_page => return Ok(elsewhere(&target.way_back())),
        Err(TicketFault::Expired) => {
            return Err(v1::no_spark_ui(&format!("This URL has expired: {}", target.advice())));
        }
        Err(TicketFault::Forged) => {
            return Err(v1::no_spark_ui(&format!("The URL isn't one of this gateway: {}", target.advice())));
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
    let form = v1::answered_within(state.settings.request_timeout, to_bytes(body, FORM)).await?;
    let form = form.map_err(|_| Problem::new(Code::RequestTooLarge, format!("A form has at most {FORM} bytes.")))?;
    if target.is_kill {
        permit_kill(ui, &ticket, &target, &parts, &form).await?;
    }
    let prefix = prefix(&parts.headers);
    let base = format!("{prefix}{}", target.base);
    let asked = ui.ask(&ticket, request::of_driver(&parts, &target, &base, form)?).await?;
    if target.is_kill && matches!(asked, Asked::Answered(_)) {
        let by = ticket.principal.as_deref();
        tracing::info!(submission = %ticket.id, path = target.path, by, "kill of a job or stage sent to the driver");
    }
    match asked {
        Asked::Answered(answer) => {
            let sent = Sent { method: &parts.method, path: target.path, base: &base };
            response::of_driver(answer, &sent).ok_or_else(|| {
                let detail = "The driver sent a response that can't be passed on.";
                Problem::new(Code::SparkUiUnavailable, detail)
            })
        }
        Asked::Ended(UiPlace::History(url)) if is_page => Ok(elsewhere(&url)),
        Asked::Ended(UiPlace::History(url)) => Err(v1::no_spark_ui(&format!("The submission has ended: see {url}"))),
        Asked::Ended(_) if is_page => Ok(ended(&target.id)),
        Asked::Ended(_) => Err(v1::no_spark_ui("The submission has ended, and its driver with it.")),
        Asked::Gone => Err(v1::no_such_submission(&target.id)),
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
