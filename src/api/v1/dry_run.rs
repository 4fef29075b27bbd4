//! `POST /v1/submissions?dryRun=true`

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Problem, Reply,
    manifest::ObjectList,
    model::{Limits, MaxRetries, Submission},
};
use crate::{
    service::{Gateway, SubmissionOptions},
    spark::CreateSubmissionRequest,
};

/// A submission, or the result of a dry run.
#[derive(ToSchema)]
#[schema(as = CreatedOrPlanned)]
#[expect(dead_code, reason = "describes two responses with one status")]
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::api) enum Created {
    Replayed(Box<Submission>),
    Planned(Box<Plan>),
}

/// The result of a dry run. The id in it is not reserved and never used.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Plan {
    /// The submission as the gateway understands the request.
    submission: Planned,
    /// The Kubernetes objects, in the order of their creation.
    manifest: ObjectList,
    /// What the driver gets in addition to what the request sets, each with its origin.
    defaults: Vec<AppliedDefault>,
    /// Properties that are probably misspelt, each with the one that was probably meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PlannedSubmission)]
pub(in crate::api) struct Planned {
    name: String,
    namespace: String,
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<MaxRetries>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::api) struct AppliedDefault {
    #[schema(example = "spark.kubernetes.container.image")]
    key: String,
    value: String,
    /// `spark-defaults` or `defaults/<name>`: set by the operator; `spark-submit`: set by Spark itself; `sparkgate`: the
    /// gateway's own labels.
    #[schema(example = "spark-defaults")]
    origin: String,
}

pub(super) async fn dry_run(
    gateway: &Gateway,
    request: CreateSubmissionRequest,
    options: SubmissionOptions,
) -> Result<Reply<Plan>, Problem> {
    let plan = gateway.dry_run(&request, options).await?;
    let options = plan.options();
    let seconds = |time: Option<std::time::Duration>| time.map(|time| time.as_secs());
    let limits = Limits {
        start_seconds: seconds(options.start_timeout),
        run_seconds: seconds(options.run_timeout),
        kill_grace_seconds: seconds(options.kill_grace),
    };
    let retries = MaxRetries {
        infrastructure: options.retries.infrastructure.unwrap_or_default(),
        application: options.retries.application.unwrap_or_default(),
    };
    let submission = Planned {
        name: plan.name().to_owned(),
        namespace: plan.namespace().to_owned(),
        labels: options.labels.clone(),
        limits: limits.any(),
        retries: retries.any(),
    };
    let defaults = plan.defaults().into_iter().map(|default| AppliedDefault {
        key: default.key,
        value: default.value,
        origin: default.origin,
    });
    let defaults = defaults.collect();
    let warnings = plan.warnings();
    Ok(Reply::ok(Plan { submission, manifest: plan.objects()?.into(), defaults, warnings }))
}
