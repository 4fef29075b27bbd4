//! The Spark UIs of drivers.

use clap::{ArgAction, Args};

use super::time_or_off::TimeOrOff;
use sparkgate_service::{HistoryUrl, SparkUiSettings, UiOrigin};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Spark UIs")]
pub(in crate::app) struct SparkUi {
    /// Serve the Spark UIs of running drivers to those who may read their submissions. The gateway connects to the address of the driver's
    /// pod, which a `NetworkPolicy` must permit (docs/use/spark-ui.md).
    #[arg(long, env = "SPARKGATE_SPARK_UI", default_value_t = true, action = ArgAction::Set)]
    spark_ui: bool,
    /// Origin at which Spark UIs are served, and nothing else, such as <https://ui.example.org>. With `{id}` at the beginning of its host,
    /// <https://{id}.ui.example.org>, each submission has an origin of its own, in which its pages have the storage of browsers
    /// (docs/use/spark-ui.md). Without it, UIs are at the gateway's own address.
    #[arg(long, env = "SPARKGATE_SPARK_UI_URL", value_name = "URL")]
    spark_ui_url: Option<UiOrigin>,
    /// URL of an ended application in your History Server, such as <https://history.example.org/history/{appId}/jobs/>. `{appId}` stands for
    /// the id of the application, `{id}` for that of the submission. The gateway links to it and sends it no requests.
    #[arg(long, env = "SPARKGATE_SPARK_HISTORY_URL", value_name = "URL")]
    spark_history_url: Option<HistoryUrl>,
    /// How often a driver is asked for its jobs and stages while it runs, at most; the last answer is kept after its end. A duration, or
    /// `off` to ask none.
    #[arg(long, env = "SPARKGATE_SPARK_SUMMARY_PERIOD", default_value_t = default_period(), value_name = "TIME|off")]
    spark_summary_period: TimeOrOff,
}

impl SparkUi {
    pub(in crate::app) fn settings(&self) -> SparkUiSettings {
        SparkUiSettings {
            is_served: self.spark_ui,
            origin: self.spark_ui_url.clone(),
            history: self.spark_history_url.clone(),
            summary_period: self.spark_summary_period.0,
        }
    }
}

fn default_period() -> TimeOrOff {
    TimeOrOff(SparkUiSettings::default().summary_period)
}
