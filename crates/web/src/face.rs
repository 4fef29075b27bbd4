//! What an API has of its own in front of its handlers.

use std::{fmt::Debug, sync::Arc};

use axum::{
    http::{HeaderValue, Method},
    response::Response,
};

use super::{change::Change, problem::Problem, request_log::RequestId, routes::Route};

/// The API that a request belongs to, for all that answers before its handlers.
pub trait Face: Debug + Send + Sync {
    /// Writes a problem in the format of the API.
    fn answer(&self, problem: &Problem, path: &str, id: &RequestId) -> Response;

    /// Answers a request whose handler panicked.
    fn broken_off(&self, path: &str, id: &RequestId) -> Response {
        self.answer(&Problem::panicked(id), path, id)
    }

    /// Returns whether the sessions of browsers count for all requests.
    fn is_for_browsers(&self) -> bool {
        false
    }

    /// Returns what a request without a caller is asked for, beside a token.
    fn challenge(&self) -> Option<HeaderValue> {
        None
    }

    /// Returns the change that a request asks for, if it is one.
    fn change(&self, route: &Route, method: &Method, path: &str) -> Option<Change> {
        route.change(method, path)
    }
}

/// The face of any API.
pub type AnyFace = Arc<dyn Face>;
