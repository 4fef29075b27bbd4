//! Uploads that can be continued, in the words of the IETF's draft "Resumable Uploads for HTTP".

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::{FileQuery, Hash, StoredFile, discard};
use crate::v1::reply::Reply;
use sparkgate_access::Action;
use sparkgate_service::{FileError, NewPart, Resumed, Session, Uploaded};
use sparkgate_web::{
    problem::{Code, Problem, ProblemBody, responses::Problems},
    query::Query,
    session::Caller,
    state::AppState,
    tasks::to_its_end,
};

const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const COMPLETE: HeaderName = HeaderName::from_static("upload-complete");
const PARTIAL: &str = "application/partial-upload";

/// Continue an upload
///
/// Appends the body to what has arrived of the file. If the connection breaks, what has arrived is kept: `HEAD` answers 404 with
/// `Upload-Offset`, and the next request begins there. The file exists once the last part has arrived and all of it has the SHA-256 of
/// the path. An upload belongs to its caller, counts for the tenant's quota, and is deleted if it isn't continued for a day.
#[utoipa::path(
    patch, path = "/v1/files/{sha256}", tag = "Files", operation_id = "continueUpload",
    params(
        Hash, FileQuery,
        ("Upload-Offset" = u64, Header, description = "Where the body begins in the file: how much of it has arrived"),
        ("Upload-Complete" = String, Header, description = "`?1` if the file ends with this body, otherwise `?0`"),
    ),
    request_body(content = inline(super::Content), description = "A part of the content", content_type = "application/partial-upload"),
    responses(
        Problems,
        (status = 200, description = "The tenant has this file already", body = StoredFile),
        (status = 201, description = "The file is complete and kept", body = StoredFile, headers(("Upload-Complete", description = "`?1`"))),
        (status = 204, description = "The part is kept", headers(("Upload-Offset" = u64, description = "How much of the file has arrived"), ("Upload-Complete", description = "`?0`"))),
        (status = 400, description = "A parameter is invalid, or the body broke off: what arrived is kept", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "The caller may not submit, or the tenant's quota is used up (`file-quota-exceeded`)", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "This gateway keeps no files", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "The upload has arrived up to another offset; nothing of this part is kept", body = ProblemBody, content_type = "application/problem+json", headers(("Upload-Offset" = u64, description = "How much of the file has arrived"))),
        (status = 408, description = "The content arrives too slowly: what has arrived is kept", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The file is too large: the upload is deleted", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/partial-upload`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The content has another SHA-256: the upload is deleted", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database or the file store can't be reached, or too many files are being uploaded; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn resume(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Hash { sha256 }: Hash,
    Query(query): Query<FileQuery>,
    request: Request,
) -> Result<Response, Problem> {
    caller.require(Action::Submit).map_err(Problem::from)?;
    let headers = request.headers();
    let (offset, is_last) = place(headers)?;
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let waits = headers.contains_key(header::EXPECT);
    let mut content = request.into_body().into_data_stream();
    let files = state.service.files.clone();
    // In its own task, so that what has arrived is recorded if the client disconnects.
    let resumed = to_its_end(async move {
        let part = NewPart { sha256: &sha256, offset, length, is_last };
        let resumed = files.resume(&caller, query.namespace.as_deref(), part, &mut content).await;
        if !waits {
            discard(&mut content, resumed.is_ok()).await;
        }
        resumed
    });
    Ok(match resumed.await? {
        Resumed::Complete(Uploaded { tenant, sha256, size, existing }) => {
            let status = if existing { StatusCode::OK } else { StatusCode::CREATED };
            let reply = Reply::ok(StoredFile { sha256, size, tenant }).with_status(status);
            marked(reply.into_response(), size, true)
        }
        Resumed::Incomplete(received) => marked(StatusCode::NO_CONTENT.into_response(), received, false),
        Resumed::Elsewhere(received) => {
            let detail = format!("The part begins at byte {offset}; the upload has arrived up to byte {received}.");
            let problem = Problem::new(Code::UploadOffsetMismatch, detail).with("expected-offset", received);
            marked(problem.with("provided-offset", offset).into_response(), received, false)
        }
    })
}

/// Answers a request for a file that the tenant doesn't have with what has arrived of it from the caller.
pub(super) async fn absent(
    state: &AppState,
    caller: &Session,
    namespace: Option<&str>,
    sha256: &str,
    error: FileError,
) -> Result<Response, Problem> {
    let received = state.service.files.received(caller, namespace, sha256).await?;
    Ok(marked(Problem::from(error).into_response(), received, false))
}

/// Adds how much of a file has arrived.
fn marked(mut response: Response, received: u64, is_complete: bool) -> Response {
    let headers = response.headers_mut();
    headers.insert(OFFSET, HeaderValue::from(received));
    headers.insert(COMPLETE, HeaderValue::from_static(if is_complete { "?1" } else { "?0" }));
    response
}

/// Reads where a part begins, and whether the file ends with it.
fn place(headers: &HeaderMap) -> Result<(u64, bool), Problem> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
    let given = text(&header::CONTENT_TYPE);
    if !given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(PARTIAL) {
        let detail = format!("Content-Type is {given:?}: a part of an upload is {PARTIAL}.");
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    let digits = text(&OFFSET);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let offset = digits.parse().ok().filter(|_| is_number);
    let offset = offset.ok_or_else(|| Problem::parameter("Upload-Offset", "expected a number of bytes"))?;
    match text(&COMPLETE) {
        "?1" => Ok((offset, true)),
        "?0" => Ok((offset, false)),
        _ => Err(Problem::parameter("Upload-Complete", "expected ?0 or ?1")),
    }
}
