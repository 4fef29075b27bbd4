//! The list of a tenant's files, and their deletion.

use axum::{extract::State, http::StatusCode};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{FileQuery, Hash};
use crate::v1::reply::Reply;
use sparkgate_service::{FilePage, ListedFile};
use sparkgate_web::{
    cursor,
    problem::{Problem, ProblemBody, responses::Problems},
    query::{Query, limit},
    session::Caller,
    state::AppState,
};

const LIMIT: u32 = 50;

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(in crate::v1) struct FilesQuery {
    /// The namespace of the submissions that use the files: it selects the tenant, as for a submission. Needed by callers that may
    /// submit in several tenants
    namespace: Option<String>,
    /// Page size.
    #[serde(deserialize_with = "limit::<500, _>")]
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// A file of a tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct FileEntry {
    /// The SHA-256 of its content, in hex.
    #[schema(example = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    sha256: String,
    /// Its size in bytes.
    #[schema(example = 1048576)]
    size: u64,
    /// The name under which a submission used it last. A file is its content, and has no name of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "job.py")]
    name: Option<String>,
    /// The principal that uploaded it first.
    #[schema(example = "corp:alice")]
    created_by: String,
    created_at: DateTime<Utc>,
    /// When it was uploaded last, or when the last submission that used it ended.
    last_used_at: DateTime<Utc>,
    /// The number of live submissions that use it.
    submissions: u64,
    /// When it is deleted if no submission uses it until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
}

/// A page of files, the newest first.
#[derive(Serialize, ToSchema)]
pub(in crate::v1) struct FileList {
    /// The tenant that they belong to.
    #[schema(example = "analytics")]
    tenant: String,
    items: Vec<FileEntry>,
    /// The `cursor` of the next page. The last page has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<ListedFile> for FileEntry {
    fn from(ListedFile { file, expires_at }: ListedFile) -> Self {
        Self {
            sha256: file.sha256,
            size: file.size,
            name: file.name,
            created_by: file.created_by,
            created_at: file.created_at,
            last_used_at: file.last_used_at,
            submissions: file.submissions,
            expires_at,
        }
    }
}

/// List files
///
/// The files of one tenant, the newest first. For callers that may submit in it.
#[utoipa::path(
    get, path = "/v1/files", tag = "Files", operation_id = "listFiles", params(FilesQuery),
    responses(
        Problems,
        (status = 200, description = "One page", body = FileList),
        (status = 403, description = "The caller may not submit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "This gateway keeps no files", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn list(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<FilesQuery>,
) -> Result<Reply<FileList>, Problem> {
    let FilesQuery { namespace, limit, cursor } = query;
    let keys = state.service.submissions.cursor_keys();
    let described = format!("files of {namespace:?}");
    let before = cursor.map(|text| cursor::read(&keys, &described, &text)).transpose()?;
    let limit = limit.unwrap_or(LIMIT);
    let FilePage { tenant, mut files } = state.service.files.list(&caller, namespace.as_deref(), before, limit).await?;
    let next = cursor::cut(&keys, &described, &mut files, limit, |listed| listed.file.number)?;
    Ok(Reply::ok(FileList { tenant, items: files.into_iter().map(FileEntry::from).collect(), next }))
}

/// Delete a file
///
/// For the principal that uploaded it first, and for operators of its tenant. A file that a live submission uses stays.
#[utoipa::path(
    delete, path = "/v1/files/{sha256}", tag = "Files", operation_id = "deleteFile", params(Hash, FileQuery),
    responses(
        Problems,
        (status = 204, description = "The file is deleted"),
        (status = 403, description = "The caller may not submit, or another principal uploaded the file", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "The tenant has no such file, or this gateway keeps none", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "Live submissions use the file (`file-used`)", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn delete(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Hash { sha256 }: Hash,
    Query(query): Query<FileQuery>,
) -> Result<StatusCode, Problem> {
    state.service.files.delete(&caller, query.namespace, sha256).await?;
    Ok(StatusCode::NO_CONTENT)
}
