//! The Spark releases that the gateway serves.

use serde::Serialize;
use utoipa::ToSchema;

use super::reply::Reply;
use sparkgate_web::{
    problem::{Problem, ProblemBody},
    query::{NoParameters, Query},
    session::Caller,
};

/// The Spark releases that the gateway serves, in their order.
#[derive(Serialize, ToSchema)]
pub(super) struct SparkVersionList {
    items: Vec<ServedVersion>,
    /// The release of submissions for which nothing else selects one. A tenant may have another default (`GET /v1/me`).
    #[schema(example = "4.3.0")]
    default: String,
}

/// A Spark release.
#[derive(Serialize, ToSchema)]
#[schema(as = ServedSparkVersion)]
pub(super) struct ServedVersion {
    #[schema(example = "4.3.0")]
    version: String,
    /// The line, which selects it as well.
    #[schema(example = "4.3")]
    line: String,
    /// The image of submissions that name none, if the release has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "registry.example.org/spark:4.3.0")]
    image: Option<String>,
}

/// List the Spark versions
///
/// Any of them can be the `sparkVersion` of a submission, as far as its tenant may use it.
#[utoipa::path(
    get, path = "/v1/spark-versions", tag = "Submissions", operation_id = "listSparkVersions",
    responses(
        (status = 200, description = "The versions", body = SparkVersionList),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(Caller(caller): Caller, _: Query<NoParameters>) -> Result<Reply<SparkVersionList>, Problem> {
    let lines = caller.spark_lines();
    let items = lines.versions().map(|version| ServedVersion {
        version: version.to_string(),
        line: version.line().to_string(),
        image: lines.image(version).map(str::to_owned),
    });
    Ok(Reply::ok(SparkVersionList { items: items.collect(), default: lines.default_version().to_string() }))
}
