//! The states of an executor: those of Spark's `ExecutorPodState`.

use std::{fmt, str::FromStr};

/// The state of an executor. It only moves down this list, from one of the first three; the last three are terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecutorState {
    /// The pod exists, but its phase is unknown because its node can't be reached.
    Unknown,
    Pending,
    Running,
    /// Spark's container exited with code 0.
    Succeeded,
    /// Spark's container exited with another code, or its pod failed.
    Failed,
    /// The pod was deleted: by the driver, which no longer needs it, or by another client.
    Deleted,
}

impl ExecutorState {
    /// The states that aren't terminal, in order.
    pub const LIVE: [Self; 3] = [Self::Unknown, Self::Pending, Self::Running];

    const ALL: [Self; 6] = [Self::Unknown, Self::Pending, Self::Running, Self::Succeeded, Self::Failed, Self::Deleted];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Deleted => "DELETED",
        }
    }

    /// Returns whether the state is terminal.
    pub fn is_final(self) -> bool {
        !Self::LIVE.contains(&self)
    }

    /// Returns whether an observation of the state `next` may replace this state.
    pub fn may_become(self, next: Self) -> bool {
        !self.is_final() && self.rank() <= next.rank()
    }

    fn rank(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Pending => 1,
            Self::Running => 2,
            Self::Succeeded | Self::Failed | Self::Deleted => 3,
        }
    }
}

impl fmt::Display for ExecutorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A value that is no state of an executor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state of an executor")]
pub struct UnknownExecutorState(String);

impl FromStr for ExecutorState {
    type Err = UnknownExecutorState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| UnknownExecutorState(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executors_move_forwards_and_terminal_states_are_never_left() {
        use ExecutorState::*;
        for state in ExecutorState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
            assert_eq!(state.may_become(Deleted), !state.is_final(), "{state}");
            assert_eq!(state.may_become(state), !state.is_final(), "{state}");
        }
        assert!(Unknown.may_become(Pending) && Pending.may_become(Running) && Running.may_become(Failed));
        assert!(!Running.may_become(Pending) && !Running.may_become(Unknown) && !Deleted.may_become(Running));
    }
}
