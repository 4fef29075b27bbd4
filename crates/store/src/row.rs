//! Converts rows to the types of the layers below, and parts that several statements have.

use std::str::FromStr;

use super::error::Error;
use sparkgate_submission::KillCause;

/// The condition that the clock of the database is believed: it isn't past the given time, if there is one.
pub(super) const BELIEVED: &str = "($4::timestamptz IS NULL OR now() <= $4)";

/// Parses one text column of the row `id`.
pub(super) fn parse<T>(id: &str, text: &str) -> Result<T, Error>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.parse().map_err(|source| Error::row(id, source))
}

/// Returns why the submission of the row `id` is being killed. `message` is the one of a row in state KILLING.
pub(super) fn kill_cause(id: &str, cause: Option<&str>, message: Option<String>) -> Result<KillCause, Error> {
    KillCause::from_row(cause, message).map_err(|source| Error::row(id, source))
}

/// Returns the rows that can be read. One that can't is logged, and must not stop the others.
pub(super) fn readable<T>(rows: impl IntoIterator<Item = Result<T, Error>>) -> Vec<T> {
    let readable = |row: Result<T, Error>| {
        row.inspect_err(|error| {
            tracing::error!(error = error as &dyn std::error::Error, "row skipped: it can't be read");
        })
        .ok()
    };
    rows.into_iter().filter_map(readable).collect()
}

/// Returns the names of states, for `= ANY($n)`.
pub(super) fn words(states: impl IntoIterator<Item = sparkgate_submission::State>) -> Vec<&'static str> {
    states.into_iter().map(|state| state.as_str()).collect()
}

/// Returns the names of all terminal states.
pub(super) fn ends() -> Vec<&'static str> {
    words(sparkgate_submission::State::ALL.into_iter().filter(|state| state.is_terminal()))
}
