//! Entrances for fuzzing to parsers that only this API calls.

use super::{
    events::EventQuery,
    submissions::{ListQuery, new::parse},
};
use sparkgate_service::SubmissionOptions;
use sparkgate_spark::{CreateSubmissionRequest, SparkVersion};
use sparkgate_web::{cursor, query::read};

/// Parses the body of `POST /v1/submissions`.
pub fn create_request(body: &[u8], version: SparkVersion) -> Option<(CreateSubmissionRequest, SubmissionOptions)> {
    parse(body, version).ok()
}

/// Parses a query as the parameters of the list of submissions and of the stream of events. Returns whether either could be read.
pub fn query(query: &str) -> bool {
    read::<ListQuery>(query).is_ok() | read::<EventQuery>(query).is_ok()
}

/// Returns the place that a cursor stands for.
pub fn cursor(key: &[u8; 32], list: &str, text: &str) -> Option<i64> {
    cursor::read(&[*key], list, text).ok()
}

/// Returns a cursor of a place.
pub fn written_cursor(key: &[u8; 32], list: &str, place: i64) -> Option<String> {
    cursor::write(&[*key], list, place).ok()
}
