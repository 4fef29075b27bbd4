//! The most that submissions may ask for.

use clap::Args;

use super::time_or_off::TimeOrOff;
use crate::service::Caps;

#[derive(Debug, Clone, Args)]
pub(in crate::app) struct Limits {
    /// The longest that a submission may take to run, from being queued: a time such as 30m, or `off`. It holds for those
    /// that ask for no limit, too. What a request may ask for otherwise comes from `spark.sparkgate.startTimeout` in the
    /// Spark defaults.
    #[arg(long, env = "SPARKGATE_MAX_START_TIMEOUT", default_value_t = TimeOrOff(None), value_name = "TIME")]
    max_start_timeout: TimeOrOff,
    /// The longest that a submission may run, in the same way (`spark.sparkgate.runTimeout`).
    #[arg(long, env = "SPARKGATE_MAX_RUN_TIMEOUT", default_value_t = TimeOrOff(None), value_name = "TIME")]
    max_run_timeout: TimeOrOff,
    /// The longest grace period that a killed driver may ask for, or `off`.
    #[arg(long, env = "SPARKGATE_MAX_KILL_GRACE", default_value_t = TimeOrOff(None), value_name = "TIME")]
    max_kill_grace: TimeOrOff,
    /// How often a submission may be tried again after each kind of failure, at most.
    #[arg(long, env = "SPARKGATE_MAX_RETRIES", default_value_t = 10)]
    max_retries: u32,
}

impl Limits {
    pub(in crate::app) fn settings(&self) -> Caps {
        Caps {
            start_timeout: self.max_start_timeout.0,
            run_timeout: self.max_run_timeout.0,
            kill_grace: self.max_kill_grace.0,
            retries: Some(self.max_retries),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let off = TimeOrOff(None);
        Self { max_start_timeout: off, max_run_timeout: off, max_kill_grace: off, max_retries: 10 }
    }
}
