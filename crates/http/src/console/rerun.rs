//! The form that runs a submission again with changes.

use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use maud::{Markup, html};

use super::{
    form as fields_of,
    layout::{Frame, Section},
    page::page,
    text::cut,
};
use crate::v1::submissions::rerun::rerun_of;
use sparkgate_service::Session;
use sparkgate_submission::SubmissionId;
use sparkgate_web::{id::Id, problem::Problem, session::Caller, state::AppState};

/// An example of changes.
const PATCH: &str = r#"{"sparkProperties": {"spark.driver.memory": "4g"}}"#;
/// The longest detail of a problem that the page shows, in bytes.
const DETAIL: usize = 2000;

/// The form that runs a submission again with a patch, below a page's address that is `up` from that of the submissions.
pub(super) fn form(id: &str, up: &str, patch: &str) -> Markup {
    html! {
        form.rerun method="post" action={ (up) (id) "/rerun" } {
            label for="patch" { "A JSON merge patch of the request, or nothing. Secrets aren't stored: set them here, or to " code { "null" } " to leave them to the operator's defaults." }
            textarea #patch name="patch" rows="6" spellcheck="false" placeholder=(PATCH) { (patch) }
            button { "Run again" }
        }
    }
}

/// Submits the request of a submission again, with the changes of a form, and shows the new submission.
pub(super) async fn submit(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let fields = fields_of::read(&parts.headers, body).await?;
    let patch = fields.into_iter().find(|(name, _)| name == "patch").map(|(_, value)| value).unwrap_or_default();
    match rerun_of(&state, &caller, &id, patch.as_bytes()).await {
        Ok(accepted) => Ok(super::page::seen_at(format!("../{}", accepted.submission.id))),
        Err(problem) if matches!(problem.code.status(), 400 | 409 | 413 | 422) => {
            Ok(refused(&problem, &id, &patch, parts.uri.path(), &caller))
        }
        Err(problem) => Err(problem),
    }
}

/// Shows why a patch was refused, above the form with the patch in it.
fn refused(problem: &Problem, id: &SubmissionId, patch: &str, path: &str, caller: &Session) -> Response {
    problem.log();
    let content = html! {
        section.problem {
            p.status { (problem.code.status()) }
            h1 { (problem.code.title()) }
            p { (cut(&problem.detail, DETAIL)) }
            @if problem.errors.len() > 1 {
                ul { @for error in &problem.errors { li { code { (error.pointer.as_deref().unwrap_or_default()) } " " (cut(&error.detail, DETAIL)) } } }
            }
            (form(id.as_str(), "../", patch))
            p.actions { a.button href={ "../" (id) } { "Back to the submission" } }
        }
    };
    let frame = Frame { title: "Run again", section: Section::Submissions, path, caller: Some(caller), live: None };
    let mut response = page(frame.around(&content));
    *response.status_mut() = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    response
}
