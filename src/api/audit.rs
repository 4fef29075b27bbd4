//! One layer over all APIs for the audit: each request that wants a change has an entry with its verdict. Most changes write theirs in
//! their own statement; this writes the others: what was denied, and what touched no row.

use std::sync::Arc;

use axum::{
    extract::Request,
    http::{Method, StatusCode},
    middleware::Next,
    response::Response,
};

use super::{
    faces::{Face, Faces},
    problem::reason::Reason,
    route_template::{FILE, SUBMISSIONS, route_of},
    tasks::spawn,
};
use crate::{
    service::{Audit, AuditSubject, RequestedChange, Session, Verdict},
    spark::rest::{Action, Target, parse_path},
};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    action: &'static str,
    about: About,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum About {
    Nothing,
    Submission(String),
    Batch(i64),
    Key(String),
    Webhook(String),
    File(String),
}

/// Answers a request, and writes what became of it to the audit.
pub(super) async fn recorded(
    audit: &Arc<Audit>,
    faces: &Faces,
    caller: Session,
    request: Request,
    next: Next,
) -> Response {
    let is_audited = !request.method().is_safe() && caller.actor().is_some();
    let change = is_audited.then(|| change(faces, request.method(), request.uri().path())).flatten();
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
    match spawn(answered).await {
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
fn change(faces: &Faces, method: &Method, path: &str) -> Option<Change> {
    let of = |action, about| Some(Change { action, about });
    match faces.of(path) {
        Face::Kubeflow if method == Method::POST => of("submit", About::Nothing),
        Face::Kubeflow => None,
        Face::Livy => {
            let path = path.strip_prefix(faces.livy_prefix()).unwrap_or(path);
            let id = path.rsplit('/').next().unwrap_or_default();
            match (method.as_str(), route_of(path)?) {
                ("POST", "/batches") => of("submit", About::Nothing),
                ("DELETE", "/batches/{id}") => of("delete-batch", id.parse().map_or(About::Nothing, About::Batch)),
                _ => None,
            }
        }
        Face::Spark if method == Method::POST => match parse_path(path, faces.version).ok()? {
            Target::Action { action: Action::Create, .. } => of("submit", About::Nothing),
            Target::Action { action: Action::Kill, id } => of("kill", id.map_or(About::Nothing, About::Submission)),
            Target::Action { action: Action::KillAll, .. } => of("killall", About::Nothing),
            Target::Action { action: Action::Clear, .. } => of("clear", About::Nothing),
            Target::Action { action: Action::Status | Action::Readyz, .. } | Target::Nowhere { .. } => None,
        },
        Face::Spark => None,
        Face::Resources | Face::Console => {
            let route = route_of(path)?;
            // `/v1/tokens/{id}` and `/console/submissions/{id}` have their id at the same place.
            let id = || path.split('/').nth(3).unwrap_or_default().to_owned();
            match (method.as_str(), route) {
                ("POST", SUBMISSIONS) => of("submit", About::Nothing),
                ("POST", "/v1/submissions/{id}/rerun" | "/console/submissions/{id}/rerun") => {
                    of("submit", About::Submission(id()))
                }
                ("DELETE", "/v1/submissions/{id}") | ("POST", "/console/submissions/{id}/kill") => {
                    of("kill", About::Submission(id()))
                }
                ("POST", "/console/submissions/kill") => of("kill", About::Nothing),
                ("POST", "/v1/tokens") => of("create-key", About::Nothing),
                ("DELETE", "/v1/tokens/{id}") => of("revoke-key", About::Key(id())),
                ("PUT" | "PATCH", FILE) => of("upload-file", About::File(id())),
                ("DELETE", FILE) => of("delete-file", About::File(id())),
                ("POST", "/v1/webhooks") => of("create-webhook", About::Nothing),
                ("DELETE", "/v1/webhooks/{id}") => of("delete-webhook", About::Webhook(id())),
                ("POST", "/v1/webhooks/{id}/rotate") => of("rotate-webhook", About::Webhook(id())),
                ("POST", "/v1/webhooks/{id}/replay" | "/v1/webhooks/{id}/deliveries/{delivery}/replay") => {
                    of("replay-webhook", About::Webhook(id()))
                }
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::openapi, spark::SparkVersion};

    /// Unsafe methods that ask only for an answer.
    const READS: [(&str, &str); 0] = [];

    #[test]
    fn each_route_with_an_unsafe_method_is_a_change() {
        let faces = Faces::all(SparkVersion::V4_3, Some("/livy"));
        for (template, item) in openapi().paths.paths {
            let path = template.replace("{id}", "driver-1").replace("{delivery}", "7").replace("{sha256}", "aa");
            for (method, operation) in
                [("POST", item.post), ("PUT", item.put), ("PATCH", item.patch), ("DELETE", item.delete)]
            {
                let is_read = READS.contains(&(method, template.as_str()));
                if operation.is_some() && !is_read {
                    let found = change(&faces, &method.parse().unwrap(), &path);
                    assert!(found.is_some(), "{method} {template} has no name in the audit");
                }
            }
        }
    }

    #[test]
    fn the_other_apis_have_changes_too() {
        let faces = Faces::all(SparkVersion::V4_3, Some("/livy"));
        let of = |method: &str, path: &str| {
            change(&faces, &method.parse().unwrap(), path).map(|change| (change.action, change.about))
        };
        let submission = |id: &str| About::Submission(id.to_owned());
        for (method, path, expected) in [
            ("POST", "/api/v1/spark-submit", Some(("submit", About::Nothing))),
            ("POST", "/livy/batches", Some(("submit", About::Nothing))),
            ("DELETE", "/livy/batches/7", Some(("delete-batch", About::Batch(7)))),
            ("DELETE", "/livy/batches/nightly", Some(("delete-batch", About::Nothing))),
            ("POST", "/livy/batches/7/state", None),
            ("POST", "/v1/submissions/kill/driver-1", Some(("kill", submission("driver-1")))),
            ("POST", "/v1/submissions/status/driver-1", None),
            ("POST", "/console/submissions/driver-1/kill", Some(("kill", submission("driver-1")))),
            ("POST", "/console/submissions/kill", Some(("kill", About::Nothing))),
            ("POST", "/console/submissions/driver-1/rerun", Some(("submit", submission("driver-1")))),
            ("PUT", "/v1/submissions/create", None),
            ("POST", "/elsewhere", None),
        ] {
            assert_eq!(of(method, path), expected, "{method} {path}");
        }
    }
}
