//! Keeps the pause that an overloaded API server asks for.

use bytes::Bytes;
use http::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{Either, Full};
use serde_json::json;

/// Replaces the text of a 429 or 503 by a `Status` with the pause of its `Retry-After`: kube's client passes on no headers, and
/// priority and fairness answers with a text (`tooManyRequests`).
pub(super) fn keep<B>(response: Response<B>) -> Response<Either<Full<Bytes>, B>> {
    let (parts, body) = response.into_parts();
    let reason = match parts.status {
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => return Response::from_parts(parts, Either::Right(body)),
    };
    let Some(seconds) = seconds(&parts.headers) else { return Response::from_parts(parts, Either::Right(body)) };
    let message = "the API server asks for a pause, because it is overloaded or can't serve the request yet";
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": parts.status.as_u16(),
        "reason": reason, "message": message, "details": {"retryAfterSeconds": seconds}});
    Response::from_parts(parts, Either::Left(Full::new(status.to_string().into())))
}

/// Returns the pause of an answer whose body can't have it.
fn seconds(headers: &HeaderMap) -> Option<u32> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_status = text(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"));
    text(RETRY_AFTER).filter(|_| !is_status)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use kube::core::Status;

    use super::*;

    async fn kept(code: u16, kind: &str, pause: Option<&str>, said: &str) -> String {
        let mut response = Response::builder().status(code).header(CONTENT_TYPE, kind);
        if let Some(pause) = pause {
            response = response.header(RETRY_AFTER, pause);
        }
        let response = keep(response.body(Full::new(Bytes::from(said.to_owned()))).unwrap());
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn the_pause_of_an_overloaded_server_is_part_of_its_status() {
        for code in [429, 503] {
            let kept = kept(code, "text/plain; charset=utf-8", Some("3"), "Too many requests, please try again later.");
            let status: Status = serde_json::from_str(&kept.await).unwrap();
            assert_eq!((status.code, status.details.unwrap().retry_after_seconds), (code, 3));
        }
        for (code, kind, pause) in [
            (429, "application/json", Some("3")),
            (429, "text/plain", None),
            (429, "text/plain", Some("Wed, 21 Oct 2026 07:28:00 GMT")),
            (404, "text/plain", Some("3")),
            (200, "text/plain", Some("3")),
        ] {
            assert_eq!(kept(code, kind, pause, "as it was").await, "as it was", "{code} {kind} {pause:?}");
        }
    }
}
