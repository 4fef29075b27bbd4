//! That a run takes longer than expected, as the API represents it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use sparkgate_service::Lateness;

/// The current attempt takes longer than expected.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct Late {
    /// When that was reported.
    since: DateTime<Utc>,
    /// The duration that was expected. Without `runs`, the request names it.
    #[schema(example = 600)]
    expected_seconds: i32,
    /// Of how many earlier runs of the same name it is the median. Such a run is late after three times the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 20)]
    runs: Option<i32>,
}

impl From<Lateness> for Late {
    fn from(Lateness { reported_at, seconds, runs }: Lateness) -> Self {
        Self { since: reported_at, expected_seconds: seconds, runs }
    }
}
