//! One layer over all APIs for the audit: each request that wants a change has an entry with its verdict. Most changes write theirs in
//! their own statement; this writes the others: what was denied, and what touched no row.

use std::sync::Arc;

use axum::{extract::Request, http::StatusCode, middleware::Next, response::Response};

use sparkgate_service::{Audit, AuditSubject, RequestedChange, Session, Verdict, spawn_in_span};
use sparkgate_web::{
    change::{About, Change},
    face::AnyFace,
    problem::reason::Reason,
    routes::Route,
};

/// Answers a request, and writes what became of it to the audit.
pub(super) async fn recorded(
    audit: &Arc<Audit>,
    face: &AnyFace,
    caller: Session,
    request: Request,
    next: Next,
) -> Response {
    let is_audited = !request.method().is_safe() && caller.actor().is_some();
    let change = is_audited.then(|| change(face, &request)).flatten();
    let Some(change) = change else { return next.run(request).await };
    let audit = audit.clone();
    let is_file = matches!(change.about, About::File(_));
    let answered = async move {
        let response = next.run(request).await;
        let named = match &change.about {
            About::Key(id) => format!("key {id}"),
            About::Webhook(id) => format!("webhook {id}"),
            About::File(digest) => format!("file {digest}"),
            About::Nothing | About::Submission(_) | About::Batch(_) => String::new(),
        };
        let subject = match &change.about {
            About::Submission(id) => Some(AuditSubject::Submission(id)),
            About::Batch(number) => Some(AuditSubject::Batch(*number)),
            About::Key(id) => Some(AuditSubject::Key(id)),
            About::Webhook(id) => Some(AuditSubject::Webhook(id)),
            About::Nothing | About::File(_) => None,
        };
        let asked = RequestedChange { action: change.action, subject, named: &named };
        audit.write(&caller, asked, verdict(&response)).await;
        response
    };
    if !is_file {
        return answered.await;
    }
    // A client that disconnects must not hide that its file was taken.
    match spawn_in_span(answered).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => cancelled(),
        },
    }
}

/// Answers a request whose task was cancelled, which only the end of the process does.
fn cancelled() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

fn verdict(response: &Response) -> Verdict {
    let status = response.status();
    match status {
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Verdict::None,
        status if status.is_success() || status.is_redirection() => Verdict::Allowed,
        status if status.is_client_error() => Verdict::Denied(match response.extensions().get::<Reason>() {
            Some(reason) => reason.to_string(),
            None => status.to_string(),
        }),
        _ => Verdict::None,
    }
}

/// Returns the change that a request asks for, if it is one.
fn change(face: &AnyFace, request: &Request) -> Option<Change> {
    face.change(&Route::of(request), request.method(), request.uri().path())
}
