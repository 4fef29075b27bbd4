//! Usage as the API represents it.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

use sparkgate_service as service;
use sparkgate_web::problem::Problem;

/// What the submissions of a caller used in a range of days.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UsageReport)]
pub(in crate::v1) struct UsageDocument {
    /// The first day, in UTC.
    #[schema(value_type = String, format = Date, example = "2026-01-01")]
    pub(super) since: NaiveDate,
    /// The first day that isn't included.
    #[schema(value_type = String, format = Date, example = "2026-02-01")]
    pub(super) until: NaiveDate,
    #[schema(example = json!(["tenant", "label:team"]))]
    pub(super) group_by: Vec<String>,
    /// One for each group that used something, in the order of its values; none if `groupBy` is empty.
    pub(super) items: Vec<UsageGroup>,
    /// The sum over all groups.
    pub(super) total: Usage,
}

/// The usage of one group.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsageGroup {
    /// The value of each part of `groupBy`; null for submissions without that label.
    #[schema(example = json!({"tenant": "analytics", "label:team": null}))]
    pub(super) group: BTreeMap<String, Option<String>>,
    #[serde(flatten)]
    pub(super) usage: Usage,
}

/// What drivers and executors used.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1) struct Usage {
    pub(super) driver: Used,
    pub(super) executors: Used,
    pub(super) total: Used,
    /// The part of the total that comes from pods whose node didn't report when they ended; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) estimated: Option<Used>,
    /// Absent if the operator gives no prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<Cost>,
}

/// Reserved cores and memory, multiplied by the time for which they were reserved.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Used {
    #[schema(example = 7200)]
    pub(super) core_seconds: Number,
    #[schema(example = 10_630_044_057_600_u64)]
    pub(super) memory_byte_seconds: Number,
}

/// By the operator's present prices.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cost {
    /// Rounded to six digits after the point.
    pub(super) amount: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "EUR")]
    pub(super) currency: Option<String>,
}

/// What one submission used, up to the last full minute while it runs.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::v1) struct SubmissionUsage {
    #[serde(flatten)]
    usage: Usage,
    /// The same for each attempt whose pods reserved something.
    attempts: Vec<AttemptUsage>,
}

/// What one attempt used.
#[derive(Debug, Serialize, ToSchema)]
struct AttemptUsage {
    #[schema(example = 1)]
    attempt: i32,
    #[serde(flatten)]
    usage: Usage,
}

/// A decimal number with all its digits.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Number(Box<RawValue>);

impl Number {
    fn new(text: String) -> Result<Self, Problem> {
        let number = RawValue::from_string(text);
        number.map(Self).map_err(|error| Problem::internal(format!("an amount of usage is no number: {error}")))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialSchema for Number {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0)).into()
    }
}

impl ToSchema for Number {}

impl UsageDocument {
    pub(super) fn new(
        since: NaiveDate,
        until: NaiveDate,
        group_by: Vec<String>,
        report: service::UsageReport,
        currency: Option<&str>,
    ) -> Result<Self, Problem> {
        let item = |(values, usage)| {
            let group = group_by.iter().cloned().zip(values).collect();
            Ok(UsageGroup { group, usage: Usage::new(usage, currency)? })
        };
        // Without groups the only one is the total.
        let items = match group_by.is_empty() {
            true => Vec::new(),
            false => report.groups.into_iter().map(item).collect::<Result<_, Problem>>()?,
        };
        Ok(Self { since, until, items, total: Usage::new(report.total, currency)?, group_by })
    }
}

impl SubmissionUsage {
    /// Returns `None` if the submission has used nothing yet.
    pub(in crate::v1) fn new(usage: service::SubmissionUsage, currency: Option<&str>) -> Result<Option<Self>, Problem> {
        if usage.attempts.is_empty() {
            return Ok(None);
        }
        let attempt = |(attempt, usage)| Ok(AttemptUsage { attempt, usage: Usage::new(usage, currency)? });
        let attempts = usage.attempts.into_iter().map(attempt).collect::<Result<_, Problem>>()?;
        Ok(Some(Self { usage: Usage::new(usage.total, currency)?, attempts }))
    }
}

impl Usage {
    fn new(usage: service::UsageOf, currency: Option<&str>) -> Result<Self, Problem> {
        let used = |used: service::Used| {
            let core_seconds = Number::new(used.core_seconds)?;
            Ok::<_, Problem>(Used { core_seconds, memory_byte_seconds: Number::new(used.memory_byte_seconds)? })
        };
        let is_estimated = usage.estimated.core_seconds != "0" || usage.estimated.memory_byte_seconds != "0";
        let cost = usage.cost.map(|amount| {
            Ok::<_, Problem>(Cost { amount: Number::new(amount)?, currency: currency.map(str::to_owned) })
        });
        Ok(Self {
            driver: used(usage.driver)?,
            executors: used(usage.executors)?,
            total: used(usage.total)?,
            estimated: is_estimated.then(|| used(usage.estimated)).transpose()?,
            cost: cost.transpose()?,
        })
    }
}
