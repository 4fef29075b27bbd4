//! How long ended submissions and their pods are kept.

use clap::Args;

use super::time_or_off::TimeOrOff;
use sparkgate_service::CleanUpSettings;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Clean-up")]
pub(in crate::app) struct CleanUp {
    /// How long the pod of an ended driver is kept, with its log and all objects that it owns: a duration such as 7d, 12h,
    /// 30m or 90s, or `off` to never delete it, as Spark does.
    #[arg(long, env = "SPARKGATE_FINISHED_POD_TTL", default_value_t = TimeOrOff::days(7), value_name = "TIME|off")]
    finished_pod_ttl: TimeOrOff,
    /// How long the record of an ended submission is kept: a duration, or `off` to keep it for ever. The pod is deleted
    /// with it.
    #[arg(long, env = "SPARKGATE_RETENTION", default_value_t = TimeOrOff::days(90), value_name = "TIME|off")]
    retention: TimeOrOff,
}

impl CleanUp {
    pub(in crate::app) fn settings(&self) -> CleanUpSettings {
        CleanUpSettings { finished_pod_ttl: self.finished_pod_ttl.0, retention: self.retention.0 }
    }
}
