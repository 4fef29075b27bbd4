//! The states of an executor: Spark's `ExecutorPodState`s.

use std::{fmt, str::FromStr};

/// Where an executor is. It only moves down this list, from one of the first three; the last three are ends and absorb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecutorState {
    /// The pod is there and nobody tells in which phase: its node can't be reached.
    Unknown,
    Pending,
    Running,
    /// Spark's container exited with code 0.
    Succeeded,
    /// It exited otherwise, or its pod failed.
    Failed,
    /// Its pod was deleted: by the driver, which needs it no longer, or by anybody else.
    Deleted,
}

impl ExecutorState {
    /// The states that can still change, in order.
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

    /// Whether it is one of the ends.
    pub fn is_final(self) -> bool {
        !Self::LIVE.contains(&self)
    }

    /// Whether what is known of an executor in this state may be replaced by a look that found it in `next`.
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

/// A word that names no state of an executor.
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
    fn executors_move_forwards_and_ends_absorb() {
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
