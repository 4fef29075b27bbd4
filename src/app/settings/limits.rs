//! Upper bounds for what submissions may request.

use clap::Args;

use super::time_or_off::TimeOrOff;
use sparkgate_service::Caps;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits of submissions")]
pub(in crate::app) struct Limits {
    /// Upper bound for the start timeout, the time from being queued to running: a duration such as 30m, or `off`. It also
    /// applies to submissions that set none. `spark.sparkgate.startTimeout` in the Spark defaults sets a default that
    /// requests may override up to this bound.
    #[arg(long, env = "SPARKGATE_MAX_START_TIMEOUT", default_value_t = TimeOrOff(None), value_name = "TIME|off")]
    max_start_timeout: TimeOrOff,
    /// Upper bound for the run timeout, the time from running to the end: a duration, or `off`. It also applies to
    /// submissions that set none. `spark.sparkgate.runTimeout` in the Spark defaults sets a default.
    #[arg(long, env = "SPARKGATE_MAX_RUN_TIMEOUT", default_value_t = TimeOrOff(None), value_name = "TIME|off")]
    max_run_timeout: TimeOrOff,
    /// Upper bound for the grace period of killed drivers, or `off`.
    #[arg(long, env = "SPARKGATE_MAX_KILL_GRACE", default_value_t = TimeOrOff(None), value_name = "TIME|off")]
    max_kill_grace: TimeOrOff,
    /// Upper bound for the retries of a submission, for each kind of failure.
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
