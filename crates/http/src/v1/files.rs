//! Uploaded files.

pub(super) mod manage;
pub(super) mod parts;

use std::time::Duration;

use axum::{
    Extension,
    body::{Body, BodyDataStream},
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures::StreamExt;
use http_range_header::parse_range_header;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};
use utoipa::{IntoParams, ToSchema};

use super::reply::Reply;
use sparkgate_service::{Download, Fetched, FileError, Uploaded, is_sha256};
use sparkgate_web::{
    compression::Live,
    id::{not_found, part_of_path},
    problem::{Problem, ProblemBody, responses::Problems},
    query::{NoParameters, Query},
    session::Caller,
    state::AppState,
    tasks::to_its_end,
};

/// How much of a refused upload is read.
const DISCARDED: u64 = 64 << 20;
/// How long its client may send nothing, and how long that is done at all.
const SILENCE: Duration = Duration::from_secs(10);
const DISCARDS: Duration = Duration::from_secs(60);

/// An uploaded file.
#[derive(Serialize, ToSchema)]
pub(super) struct StoredFile {
    /// The SHA-256 of its content, in hex.
    #[schema(example = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    sha256: String,
    /// Its size in bytes.
    #[schema(example = 1048576)]
    size: u64,
    /// The tenant that it belongs to.
    #[schema(example = "analytics")]
    tenant: String,
}

/// The bytes of the file, unchanged.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "bodies are streams")]
struct Content(Vec<u8>);

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileQuery {
    /// The namespace of the submissions that use the file: it selects the tenant, as for a submission. Needed by callers that may
    /// submit in several tenants
    namespace: Option<String>,
}

/// Upload a file
///
/// The body is the content. The file is kept once all of it has arrived and has the SHA-256 of the path; otherwise nothing is. A file
/// that the tenant has already is answered at once.
///
/// A submission refers to it as `sparkgate-file:/<sha256>/<name>`, wherever Spark takes a URI. The driver gets it under that name. A
/// file that no submission uses is deleted after a while.
#[utoipa::path(
    put, path = "/v1/files/{sha256}", tag = "Files", operation_id = "uploadFile", params(Hash, FileQuery),
    request_body(content = inline(Content), description = "The content", content_type = "application/octet-stream"),
    responses(
        Problems,
        (status = 200, description = "The tenant has this file already", body = StoredFile),
        (status = 201, description = "The file is kept", body = StoredFile),
        (status = 400, description = "A parameter is invalid, or the body broke off", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "The caller may not submit, or the tenant's quota is used up (`file-quota-exceeded`)", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "This gateway keeps no files", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The content arrives too slowly", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The file is too large", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The content has another SHA-256", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database or the file store can't be reached, or too many files are being uploaded; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn upload(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Hash { sha256 }: Hash,
    Query(query): Query<FileQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let waits = request.headers().contains_key(header::EXPECT);
    let mut content = request.into_body().into_data_stream();
    // In its own task, so that what was written is removed if the client disconnects.
    let files = state.service.files.clone();
    let uploaded = to_its_end(async move {
        let uploaded = files.upload(&caller, query.namespace.as_deref(), &sha256, length, &mut content).await;
        if !waits {
            discard(&mut content, uploaded.is_ok()).await;
        }
        uploaded
    });
    let Uploaded { tenant, sha256, size, existing } = uploaded.await?;
    let status = if existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok(Reply::ok(StoredFile { sha256, size, tenant }).with_status(status).into_response())
}

/// Download a file
///
/// For callers that may submit in its tenant. A `HEAD` request tells whether the tenant has the file, and if not, in `Upload-Offset`, how
/// much of it has arrived from the caller.
#[utoipa::path(
    get, path = "/v1/files/{sha256}", tag = "Files", operation_id = "downloadFile", params(Hash, FileQuery, ("Range" = Option<String>, Header, description = "A part of the content, such as `bytes=0-1023`")),
    responses(
        Problems,
        (status = 200, description = "The content", body = inline(Content), content_type = "application/octet-stream"),
        (status = 206, description = "A part of the content", body = inline(Content), content_type = "application/octet-stream"),
        (status = 304, description = "The content is that of the entity tag in `If-None-Match`"),
        (status = 403, description = "The caller may not submit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "The tenant has no such file, or this gateway keeps none", body = ProblemBody, content_type = "application/problem+json"),
        (status = 416, description = "The content has no such part"),
        (status = 503, description = "The database or the file store can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn download(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Hash { sha256 }: Hash,
    Query(query): Query<FileQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let namespace = query.namespace.as_deref();
    let download = match state.service.files.download(&caller, namespace, &sha256).await {
        Err(error @ FileError::NotFound { .. }) if method == Method::HEAD => {
            return parts::absent(&state, &caller, namespace, &sha256, error).await;
        }
        download => download?,
    };
    content(&download, &method, &headers).await
}

/// Fetch a file of a submission
///
/// For its driver and executors: the gateway writes this URL into the driver's properties. It needs no credentials, because it is
/// signed, and is valid until the submission ends.
#[utoipa::path(
    get, path = "/v1/files/{sha256}/{id}/{signature}/{name}", tag = "Files", operation_id = "fetchFile", params(Signed, ("Range" = Option<String>, Header, description = "A part of the content, such as `bytes=0-1023`")),
    responses(
        Problems,
        (status = 200, description = "The content", body = inline(Content), content_type = "application/octet-stream"),
        (status = 206, description = "A part of the content", body = inline(Content), content_type = "application/octet-stream"),
        (status = 304, description = "The content is that of the entity tag in `If-None-Match`"),
        (status = 404, description = "The URL isn't one that this gateway has signed", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "The submission has ended", body = ProblemBody, content_type = "application/problem+json"),
        (status = 416, description = "The content has no such part"),
        (status = 503, description = "The database or the file store can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn fetch(
    State(state): State<AppState>,
    Signed { sha256, id, signature, name }: Signed,
    _: Query<NoParameters>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let submission = id.parse().map_err(|_| not_found(&id))?;
    let fetched = Fetched { submission: &submission, sha256: &sha256, name: &name, signature: &signature };
    let download = state.service.files.fetch(&fetched).await?;
    content(&download, &method, &headers).await
}

/// Reads what is left of a body that isn't needed. Most clients read no response before they have sent all of it, and take the end of the
/// connection for an error.
pub(super) async fn discard(content: &mut BodyDataStream, was_done: bool) {
    let (mut rest, begun) = (if was_done { u64::MAX } else { DISCARDED }, Instant::now());
    while let Ok(Some(Ok(bytes))) = timeout(SILENCE, content.next()).await {
        let Some(left) = rest.checked_sub(bytes.len() as u64) else { return };
        if !was_done && begun.elapsed() >= DISCARDS {
            return;
        }
        rest = left;
    }
}

/// Answers with the content of a file, or with the part of it that the request asks for.
async fn content(download: &Download, method: &Method, headers: &HeaderMap) -> Result<Response, Problem> {
    let (size, tag) = (download.size, format!("\"{}\"", download.sha256));
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    // A part of another content is of no use.
    let wants_part = text(header::IF_RANGE).is_none_or(|wanted| wanted == tag);
    let ranges = text(header::RANGE).filter(|_| wants_part && *method == Method::GET);
    let range = match ranges.and_then(|text| parse_range_header(text).ok()).map(|ranges| ranges.validate(size)) {
        Some(Err(_)) => {
            let all = format!("bytes */{size}");
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, all)]).into_response());
        }
        // Several parts would need a body of several parts; a server may answer with all of it instead.
        Some(Ok(ranges)) => match ranges.as_slice() {
            [only] => Some(*only.start()..only.end() + 1),
            _ => None,
        },
        None => None,
    };
    let part = range.clone().unwrap_or(0..size);
    let length = part.end - part.start;
    let mut answer = HeaderMap::new();
    let mut set = |name, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            answer.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, "application/octet-stream".to_owned());
    set(header::CONTENT_LENGTH, length.to_string());
    set(header::ACCEPT_RANGES, "bytes".to_owned());
    set(header::ETAG, tag);
    set(header::CACHE_CONTROL, "private, no-cache".to_owned());
    // The content is a client's: a browser must not interpret it as a page.
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned());
    let status = match &range {
        Some(range) => {
            set(header::CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1));
            StatusCode::PARTIAL_CONTENT
        }
        None => StatusCode::OK,
    };
    let body = match *method == Method::HEAD {
        true => Body::empty(),
        false => Body::from_stream(download.read(part).await?),
    };
    Ok((status, answer, Extension(Live), body).into_response())
}

/// `{sha256}` of the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Hash {
    /// The SHA-256 of the content, in hex
    #[param(value_type = String, pattern = "^[0-9a-f]{64}$")]
    sha256: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Hash {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let sha256 = part_of_path(parts, state, "sha256").await;
        if !is_sha256(&sha256) {
            return Err(Problem::parameter("sha256", "expected a SHA-256 as 64 hexadecimal digits in lower case"));
        }
        Ok(Self { sha256 })
    }
}

/// The path of a signed URL.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Signed {
    /// The SHA-256 of the content, in hex
    sha256: String,
    /// The submission's id
    id: String,
    /// The signature
    signature: String,
    /// The name of the file
    name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Signed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self {
            sha256: part_of_path(parts, state, "sha256").await,
            id: part_of_path(parts, state, "id").await,
            signature: part_of_path(parts, state, "signature").await,
            name: part_of_path(parts, state, "name").await,
        })
    }
}
