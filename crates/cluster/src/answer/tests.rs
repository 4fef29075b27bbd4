use std::time::Duration;

use serde_json::{Value, json};

use super::*;

fn sorted(status: Value) -> Error {
    let status: Status = serde_json::from_value(status).unwrap();
    sort("creating the driver pod a/b".to_owned(), kube::Error::Api(Box::new(status)))
}

/// Returns a status as the API server sends it about a pod.
fn failure(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
        "details": {"name": "b", "kind": "pods"}, "code": code})
}

/// Returns what kube makes of a body that isn't JSON.
fn of_text(code: u16, text: &str) -> Error {
    let status = Status::failure(text, "Failed to parse error data").with_code(code);
    sort("reading the driver pod a/b".to_owned(), kube::Error::Api(Box::new(status)))
}

#[test]
fn a_denial_that_may_pass_is_not_a_refusal() {
    for message in [
        "pods is forbidden: User \"system:serviceaccount:sparkgate:sparkgate\" cannot create resource \"pods\" in API \
         group \"\" in the namespace \"spark\": RBAC: clusterrole.rbac.authorization.k8s.io \"x\" not found",
        "pods \"pi-driver\" is forbidden: User \"u\" cannot patch resource \"pods\" in API group \"\" in the namespace \"spark\"",
        "pods \"pi-driver\" is forbidden: not yet ready to handle request",
        "pods \"pi-driver\" is forbidden: status unknown for quota: q, resources: pods",
    ] {
        assert!(matches!(sorted(failure(403, "Forbidden", message)), Error::Denied { .. }), "{message}");
    }
    for message in [
        "pods \"pi-driver\" is forbidden: violates PodSecurity \"baseline:latest\": privileged",
        "pods \"pi-driver\" is forbidden: maximum cpu usage per Pod is 2, but limit is 4",
        "pods \"pi-driver\" is forbidden: error looking up service account spark/x: serviceaccount \"x\" not found",
    ] {
        let error = sorted(failure(403, "Forbidden", message));
        assert!(matches!(error, Error::Refused { code: 403, .. }), "{message}");
    }
}

#[test]
fn a_quota_without_room_is_no_refusal_unless_the_object_alone_is_larger() {
    let quota = |requested: &str| {
        let message = format!("pods \"b\" is forbidden: exceeded quota: q, requested: pods={requested}, used: pods=5, limited: pods=5");
        sorted(failure(403, "Forbidden", &message))
    };
    assert!(matches!(quota("1"), Error::QuotaExceeded { .. }));
    let never = quota("6").to_string();
    assert!(never.contains("the API server refused it") && never.ends_with("and the quota q has 5 in all"), "{never}");
}

/// With any of these, a client of an ingress or of a proxy gets an answer that the API server hasn't seen.
#[test]
fn a_page_neither_refuses_nor_proves_that_something_is_missing() {
    for code in (400..=451).chain([500, 502, 503, 504]) {
        for text in ["404 page not found", "<html><head><title>403 Forbidden</title></head></html>", ""] {
            let error = of_text(code, text);
            assert!(matches!(error, Error::Unavailable { .. }), "{code} {text}: {error:?}");
            assert!(error.is_outage() && !error.is_answer() && !error.is_unauthorized(), "{code} {text}");
        }
    }
    for body in [
        json!({"message": "no Route matched with those values"}),
        json!({"code": 404, "message": "not found"}),
        json!({"code": 403, "reason": "Forbidden", "message": "sign in first"}),
        json!({"status": "Failure", "code": 404, "reason": "no such backend", "message": "x"}),
        json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "kubernetes cluster \"x\" not found"}),
        json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "x", "details": {}}),
        json!({"status": "Success", "code": 404, "reason": "NotFound", "message": "x", "details": {"name": "b", "kind": "pods"}}),
    ] {
        assert!(matches!(sorted(body.clone()), Error::Unavailable { .. }), "{body}");
    }
    let denied = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "[00] access denied"});
    assert!(matches!(sorted(denied), Error::Denied { .. }), "a proxy that speaks Kubernetes' language");
    let shown = sparkgate_submission::error_chain(&of_text(404, &format!("<html>\n{}", "x ".repeat(9000))));
    assert!(shown.contains("404") && shown.len() < 500, "{shown}");
}

#[test]
fn a_status_of_kubernetes_says_what_is_missing_or_wrong() {
    let missing = sorted(failure(404, "NotFound", "pods \"b\" not found"));
    assert!(matches!(missing, Error::NotFound { name, .. } if name == "b"));
    assert!(matches!(sorted(failure(409, "AlreadyExists", "exists")), Error::AlreadyExists { .. }));
    assert!(matches!(sorted(failure(409, "Conflict", "precondition")), Error::Conflict { .. }));
    for (code, reason) in [(400, "BadRequest"), (410, "Expired"), (413, "RequestEntityTooLarge"), (422, "Invalid")] {
        let said = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"});
        assert!(matches!(sorted(said), Error::Refused { code: of, .. } if of == code), "{code}");
    }
    let away = sorted(failure(503, "ServiceUnavailable", "starting"));
    assert!(away.is_outage() && away.is_answer());
    assert!(sorted(failure(401, "Unauthorized", "Unauthorized")).is_unauthorized());
}

#[test]
fn an_object_that_etcd_does_not_take_is_refused() {
    for message in [
        "etcdserver: request is too large",
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097999 vs. 2097152)",
    ] {
        let said = json!({"kind": "Status", "status": "Failure", "code": 500, "message": message});
        assert!(matches!(sorted(said), Error::Refused { code: 413, .. }), "{message}");
    }
    let other = json!({"kind": "Status", "status": "Failure", "code": 500, "message": "etcdserver: leader changed"});
    assert!(matches!(sorted(other), Error::Unavailable { .. }));
}

#[test]
fn a_webhook_refuses_denies_for_now_and_proves_nothing_about_objects() {
    let denied = |code: u16, reason: &str| {
        sorted(json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "details": {"retryAfterSeconds": 7},
            "message": "admission webhook \"w.example.org\" denied the request: no"}))
    };
    for (code, reason) in [(400, ""), (403, "Forbidden"), (404, "NotFound"), (409, "Conflict"), (422, "ours")] {
        let error = denied(code, reason);
        assert!(matches!(error, Error::Refused { .. }), "{code}: {error:?}");
    }
    for code in [429, 503] {
        let error = denied(code, "");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert!(matches!(error, Error::NotNow { .. }), "{code}: {error:?}");
    }
}
