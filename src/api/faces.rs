//! The APIs that a listener serves, and the paths of each. A refusal before any handler runs has the format of the path's API.

use std::sync::Arc;

use axum::{http::StatusCode, response::Response};

use super::{console, kubeflow, livy, problem::Code, request_log::RequestId, spark, v1};
use crate::spark::SparkVersion;

/// An API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    Resources,
    Console,
    Kubeflow,
    Livy,
    /// Every other path, as Spark's master answers every path.
    Spark,
}

/// The APIs of a listener.
#[derive(Debug, Clone)]
pub(super) struct Faces {
    pub(super) version: SparkVersion,
    livy: LivyAt,
}

#[derive(Debug, Clone)]
enum LivyAt {
    Nowhere,
    /// Below this path, which has no slash at its end.
    Below(Arc<str>),
    /// Nothing else is there.
    Everywhere,
}

impl Faces {
    /// Creates those of the gateway's own listener, with Livy's batches below a path if there is one.
    pub(super) fn all(version: SparkVersion, livy_prefix: Option<&str>) -> Self {
        let livy = livy_prefix.map_or(LivyAt::Nowhere, |prefix| LivyAt::Below(prefix.trim_end_matches('/').into()));
        Self { version, livy }
    }

    /// Creates those of the listener for Livy's clients.
    pub(super) fn of_livy(version: SparkVersion) -> Self {
        Self { version, livy: LivyAt::Everywhere }
    }

    /// Returns the API that a path belongs to.
    pub(super) fn of(&self, path: &str) -> Face {
        match &self.livy {
            LivyAt::Everywhere => return Face::Livy,
            LivyAt::Below(prefix) => {
                if path.strip_prefix(&**prefix).is_some_and(livy::serves) {
                    return Face::Livy;
                }
            }
            LivyAt::Nowhere => {}
        }
        match path {
            kubeflow::PATH => Face::Kubeflow,
            path if v1::serves(path) => Face::Resources,
            path if console::serves(path) => Face::Console,
            _ => Face::Spark,
        }
    }

    /// Returns the path before those of Livy's API.
    pub(super) fn livy_prefix(&self) -> &str {
        match &self.livy {
            LivyAt::Below(prefix) => prefix,
            LivyAt::Nowhere | LivyAt::Everywhere => "",
        }
    }

    /// Returns the refusal of a request, in the format of its API.
    pub(super) fn refused(&self, code: Code, path: String, detail: String, id: &RequestId) -> Response {
        match self.of(&path) {
            Face::Resources => v1::middleware::refused(code, path, detail, id),
            Face::Console => console::refused(code, &path, detail, id),
            Face::Kubeflow => kubeflow::refused(code, &detail),
            Face::Livy => livy::refused(code, &detail),
            Face::Spark => {
                let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                spark::error(status, detail, self.version)
            }
        }
    }

    /// Returns the answer to a request whose handler failed.
    pub(super) fn internal_error(&self, path: String, id: &RequestId) -> Response {
        match self.of(&path) {
            Face::Resources => v1::middleware::internal_error(path, id),
            Face::Console => console::internal_error(&path, id),
            _ => self.refused(Code::InternalError, path, spark::internal_error(id), id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_one_api() {
        let faces = |prefix| Faces::all(SparkVersion::V4_3, prefix);
        for (prefix, path, face) in [
            (None, "/batches", Face::Spark),
            (Some("/"), "/batches", Face::Livy),
            (Some("/"), "/batches/7/state", Face::Livy),
            (Some("/"), "/batchesx", Face::Spark),
            (Some("/"), "/v1/submissions", Face::Resources),
            (Some("/livy"), "/livy/batches/7", Face::Livy),
            (Some("/livy/"), "/livy/sessions", Face::Livy),
            (Some("/livy"), "/batches/7", Face::Spark),
            (Some("/livy"), "/livy", Face::Spark),
            (None, "/api/v1/spark-submit", Face::Kubeflow),
            (None, "/api/v1/spark-submit/", Face::Spark),
            (None, "/v1/submissions/create", Face::Spark),
            (None, "/console/submissions", Face::Console),
            (None, "/consoles", Face::Spark),
        ] {
            assert_eq!(faces(prefix).of(path), face, "{prefix:?} {path}");
        }
        assert_eq!(Faces::of_livy(SparkVersion::V4_3).of("/v1/submissions"), Face::Livy);
    }
}
