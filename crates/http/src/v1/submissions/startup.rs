//! The start of an attempt, as the API represents it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::failure::word;
use sparkgate_service as service;

/// A step of an attempt's start. Times of Kubernetes are accurate to a second.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1) struct StartupStep {
    step: StepWord,
    at: DateTime<Utc>,
    /// Seconds since the step before.
    #[schema(example = 1.5)]
    seconds: f64,
}

/// What happened.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(in crate::v1) struct StepWord(&'static str);

impl From<service::StartupStep> for StepWord {
    fn from(step: service::StartupStep) -> Self {
        Self(step.as_str())
    }
}

impl PartialSchema for StepWord {
    fn schema() -> RefOr<Schema> {
        let about = "`queued`; `admitted` by its queue; `created`: all objects of the driver exist; `scheduled`: a node accepted the pod; \
                     `started`: the image is there, and the driver's container runs; `executorRequested`: the SparkContext is up, and has \
                     asked for an executor; `executorStarted`; `firstJob` was submitted.";
        word(service::StartupStep::ALL.into_iter().map(service::StartupStep::as_str), about)
    }
}

impl ToSchema for StepWord {
    fn name() -> std::borrow::Cow<'static, str> {
        "StartupStepName".into()
    }
}

/// Converts the steps of a start.
pub(in crate::v1) fn steps(of: &[(service::StartupStep, DateTime<Utc>)]) -> Vec<StartupStep> {
    let before = of.first().into_iter().chain(of);
    let milliseconds = |from: &DateTime<Utc>, to: &DateTime<Utc>| (*to - *from).num_milliseconds();
    before
        .zip(of)
        .map(|((_, before), (step, at))| StartupStep {
            step: (*step).into(),
            at: *at,
            seconds: milliseconds(before, at) as f64 / 1000.0,
        })
        .collect()
}
