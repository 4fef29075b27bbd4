//! A batch as Livy represents it.

use serde::Serialize;

use sparkgate_service::Submission;
use sparkgate_submission::State;

/// A batch. Links to pages of a cluster manager don't exist on Kubernetes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Batch {
    id: i64,
    name: String,
    /// The caller that submitted it.
    owner: String,
    /// The user that it runs as.
    proxy_user: String,
    state: BatchState,
    app_id: String,
    app_info: AppInfo,
    log: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct AppInfo {
    driver_log_url: Option<String>,
    spark_ui_url: Option<String>,
    executor_log_urls: Option<String>,
}

/// The states of batches. Airflow knows more of them, but not all that Livy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BatchState {
    Starting,
    Running,
    Success,
    Dead,
    Killed,
}

impl From<State> for BatchState {
    fn from(state: State) -> Self {
        match state {
            State::Queued | State::Launching | State::Pending => Self::Starting,
            State::Running | State::Killing => Self::Running,
            State::Finished => Self::Success,
            State::Killed => Self::Killed,
            State::Failed | State::Error | State::Lost => Self::Dead,
        }
    }
}

impl Batch {
    pub(super) fn new(submission: Submission, log: Vec<String>) -> Self {
        Self {
            id: submission.number,
            name: submission.name,
            owner: submission.principal,
            proxy_user: submission.owner,
            state: submission.state.into(),
            app_id: submission.names.app_id,
            app_info: AppInfo::default(),
            log,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_an_end_exactly_if_the_submission_has_ended() {
        for state in State::ALL {
            let is_end = !matches!(BatchState::from(state), BatchState::Starting | BatchState::Running);
            assert_eq!(is_end, state.is_terminal(), "{state}");
        }
    }
}
