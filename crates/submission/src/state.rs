//! The states of a submission, and their mapping to Spark's driver states.

use std::{fmt, str::FromStr};

/// The state of a submission. `QUEUED → LAUNCHING → PENDING → RUNNING →` one of five terminal states; `KILLING` precedes
/// `KILLED`. Terminal states are never left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Committed; no replica has claimed the launch yet.
    Queued,
    /// A replica has claimed the launch: objects may exist.
    Launching,
    /// All objects exist; the driver has not started.
    Pending,
    Running,
    /// A kill was accepted; the driver may still run.
    Killing,
    /// The driver container ended with exit code 0.
    Finished,
    /// The driver container ended with another exit code, or its pod failed.
    Failed,
    Killed,
    /// The cluster refused the driver: it can't start as requested.
    Error,
    /// The driver's pod is gone, and its outcome can't be known.
    Lost,
}

impl State {
    pub const ALL: [State; 10] = [
        Self::Queued,
        Self::Launching,
        Self::Pending,
        Self::Running,
        Self::Killing,
        Self::Finished,
        Self::Failed,
        Self::Killed,
        Self::Error,
        Self::Lost,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Launching => "LAUNCHING",
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Killing => "KILLING",
            Self::Finished => "FINISHED",
            Self::Failed => "FAILED",
            Self::Killed => "KILLED",
            Self::Error => "ERROR",
            Self::Lost => "LOST",
        }
    }

    /// The ends of submissions that failed: neither success nor a kill.
    pub const FAILED: [Self; 3] = [Self::Failed, Self::Error, Self::Lost];

    /// Returns whether it is the end of a submission that failed.
    pub fn is_failure(self) -> bool {
        Self::FAILED.contains(&self)
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Killed | Self::Error | Self::Lost)
    }

    /// Returns whether a row in this state may move to `next`. States only move forwards, and terminal states are never left. An ERROR is
    /// that of a launch: once the driver is launched, or was seen to run, a refusal of what exists already means nothing.
    pub fn may_become(self, next: State) -> bool {
        match self {
            Self::Pending | Self::Running if next == Self::Error => false,
            Self::Queued | Self::Launching | Self::Pending | Self::Running | Self::Killing => self.rank() < next.rank(),
            Self::Finished | Self::Failed | Self::Killed | Self::Error | Self::Lost => false,
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Queued => 0,
            Self::Launching => 1,
            Self::Pending => 2,
            Self::Running => 3,
            Self::Killing => 4,
            Self::Finished | Self::Failed | Self::Killed | Self::Error | Self::Lost => 5,
        }
    }

    /// Returns the state in Spark's protocol. Never `UNKNOWN`, which clients take for a failure.
    ///
    /// `started`: the driver was observed running. This decides the state while it is being killed.
    pub fn driver_state(self, started: bool) -> DriverState {
        match self {
            Self::Queued | Self::Launching | Self::Pending => DriverState::Submitted,
            Self::Running => DriverState::Running,
            Self::Killing if started => DriverState::Running,
            Self::Killing => DriverState::Submitted,
            Self::Finished => DriverState::Finished,
            Self::Failed => DriverState::Failed,
            Self::Killed => DriverState::Killed,
            Self::Error | Self::Lost => DriverState::Error,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A value that is no state: another program wrote to the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a submission state")]
pub struct UnknownState(pub String);

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// The `driverState` of a status reply (`org.apache.spark.deploy.master.DriverState`), as far as Sparkgate uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverState {
    Submitted,
    Running,
    Finished,
    Killed,
    Failed,
    Error,
}

impl DriverState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "SUBMITTED",
            Self::Running => "RUNNING",
            Self::Finished => "FINISHED",
            Self::Killed => "KILLED",
            Self::Failed => "FAILED",
            Self::Error => "ERROR",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_only_move_forwards_and_terminal_states_are_never_left() {
        for from in State::ALL {
            for to in State::ALL {
                if from.may_become(to) {
                    assert!(!from.is_terminal() && !to.may_become(from), "{from} → {to}");
                }
            }
            assert!(from.is_terminal() || from.may_become(State::Lost), "{from} can end");
            assert_eq!(from.as_str().parse(), Ok(from));
        }
    }

    #[test]
    fn a_driver_being_killed_keeps_its_driver_state() {
        assert_eq!(State::Killing.driver_state(false), DriverState::Submitted);
        assert_eq!(State::Killing.driver_state(true), DriverState::Running);
    }
}
