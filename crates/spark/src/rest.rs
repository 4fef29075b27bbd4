//! Spark's REST submission protocol (`org.apache.spark.deploy.rest`), pure: paths, requests, replies and their JSON.
//!
//! When a request can't be run, Spark often names no field or fails with an HTML page. Here every refusal of a request is an
//! `ErrorResponse` that begins with Spark's message and continues with the cause.

mod action;
mod coerce;
mod error;
mod json;
mod page;
mod path;
mod reply;
mod request;
mod validate;

pub use action::Action;
pub use error::RequestError;
pub use json::to_json;
pub use page::{bad_message, error_page};
pub use path::{BadPath, Target, parse_path};
pub use reply::{
    ClearResponse, CreateSubmissionResponse, ErrorResponse, KillAllSubmissionResponse, KillSubmissionResponse,
    ReadyzResponse, SubmissionStatusResponse,
};
pub use request::{MAX_TEMPLATE, first_value, parse_create, parse_create_of, parse_partial};
pub use validate::refused_properties;

/// `RestSubmissionServer.PROTOCOL_VERSION`, the only version there is.
pub const PROTOCOL_VERSION: &str = "v1";
/// `RestSubmissionServer.SC_UNKNOWN_PROTOCOL_VERSION`.
pub const UNKNOWN_PROTOCOL_VERSION: u16 = 468;
