//! What submissions used, in sums over days, owners, tenants, namespaces and labels.

mod csv;
pub(super) mod document;

use std::collections::BTreeMap;

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use chrono::{Datelike, Days, NaiveDate, Utc};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use utoipa::{IntoParams, ToSchema};

use super::reply::Reply;
use sparkgate_service::{GroupBy, UsageFilter};
use sparkgate_web::{
    problem::{Problem, responses::Problems},
    query::{Query, labels, parsed},
    session::Caller,
    state::AppState,
};

use document::UsageDocument;

/// The longest range of days.
const MOST_DAYS: i64 = 366;
/// The most groups of a response.
const MOST_GROUPS: u32 = 10_000;
const LABEL: &str = "label:";

/// The form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    Json,
    Csv,
}

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct UsageQuery {
    /// The first day, in UTC; by default the first of the month
    #[serde(deserialize_with = "day")]
    #[param(value_type = Option<String>, format = Date, example = "2026-01-01")]
    since: Option<NaiveDate>,
    /// The first day after the range, in UTC; by default tomorrow. The range has 366 days at most
    #[serde(deserialize_with = "day")]
    #[param(value_type = Option<String>, format = Date, example = "2026-02-01")]
    until: Option<NaiveDate>,
    /// `day`, `tenant`, `owner`, `namespace`, or `label:` and the key of a label; repeat the parameter, or separate groups by
    /// commas
    #[serde(deserialize_with = "groups")]
    #[param(value_type = Vec<String>)]
    group_by: Vec<GroupBy>,
    /// Only submissions of this tenant
    tenant: Option<String>,
    /// Only submissions of this owner
    owner: Option<String>,
    /// Only submissions in this namespace
    namespace: Option<String>,
    /// `key=value`; may be repeated, all labels must match
    #[serde(deserialize_with = "labels")]
    #[param(value_type = Vec<String>)]
    label: Vec<(String, String)>,
    /// `csv` or `json`; without it, the header `Accept` decides
    #[serde(deserialize_with = "format")]
    #[param(inline)]
    format: Option<Format>,
}

/// Sum up usage
///
/// What drivers and executors reserved: their requested cores and memory, multiplied by the time that they had them. Usage of
/// deleted submissions is included. Pods that still run count up to the last full minute. A submission that ran on several days
/// counts on each of them for its part.
#[utoipa::path(
    get, path = "/v1/usage", tag = "Usage", operation_id = "getUsage", params(UsageQuery),
    responses(
        Problems,
        (status = 200, description = "The sums", content((UsageDocument = "application/json"), (String = "text/csv"))),
        (status = 304, description = "The document still matches `If-None-Match`"),
    )
)]
pub(super) async fn usage(
    State(state): State<AppState>,
    Caller(caller): Caller,
    headers: HeaderMap,
    Query(query): Query<UsageQuery>,
) -> Result<Response, Problem> {
    let (since, until) = range(query.since, query.until)?;
    let filter = UsageFilter {
        since,
        until,
        tenant: query.tenant,
        owner: query.owner,
        namespace: query.namespace,
        labels: query.label.into_iter().collect::<BTreeMap<_, _>>(),
    };
    let usage = &state.service.usage;
    let report = usage.report(&caller, &filter, &query.group_by, MOST_GROUPS).await?;
    if report.more {
        let detail = format!("there are more than {MOST_GROUPS} groups: narrow the range or group by less");
        return Err(Problem::parameter("groupBy", detail));
    }
    let names: Vec<String> = query.group_by.iter().map(name).collect();
    let document = UsageDocument::new(since, until, names, report, usage.currency())?;
    let format = query.format.unwrap_or_else(|| accepted(&headers));
    Ok(match format {
        Format::Json => ([(header::VARY, "accept")], Reply::ok(document)).into_response(),
        Format::Csv => csv::response(&document),
    })
}

/// Returns the range of days, with its defaults.
fn range(since: Option<NaiveDate>, until: Option<NaiveDate>) -> Result<(NaiveDate, NaiveDate), Problem> {
    let after = |day: NaiveDate| day.checked_add_days(Days::new(1)).unwrap_or(day);
    let until = until.unwrap_or_else(|| after(Utc::now().date_naive().max(since.unwrap_or(NaiveDate::MIN))));
    let last = until.checked_sub_days(Days::new(1)).unwrap_or(until);
    let since = since.or_else(|| last.with_day(1)).unwrap_or(last);
    match (until - since).num_days() {
        1..=MOST_DAYS => Ok((since, until)),
        ..1 => Err(Problem::parameter("until", format!("{until} is not after {since}, where the range begins"))),
        days => Err(Problem::parameter("since", format!("the range has {days} days; it may have {MOST_DAYS}"))),
    }
}

/// Returns the format that the client prefers; JSON unless it accepts CSV rather than that.
fn accepted(headers: &HeaderMap) -> Format {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(',')).map(|range| {
        let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
        let quality = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q=")?.parse().ok());
        (kind.trim().to_ascii_lowercase(), quality.unwrap_or(1.0))
    });
    let ranges: Vec<(String, f32)> = ranges.collect();
    let quality = |kinds: &[&str]| {
        // The most specific range counts.
        kinds
            .iter()
            .find_map(|kind| ranges.iter().find(|(range, _)| range == kind))
            .map_or(0.0, |(_, quality)| *quality)
    };
    let csv = quality(&["text/csv", "text/*", "*/*"]);
    if csv > quality(&["application/json", "application/*", "*/*"]) { Format::Csv } else { Format::Json }
}

/// Returns the name of a group as in the request.
fn name(by: &GroupBy) -> String {
    match by {
        GroupBy::Day => "day".to_owned(),
        GroupBy::Tenant => "tenant".to_owned(),
        GroupBy::Owner => "owner".to_owned(),
        GroupBy::Namespace => "namespace".to_owned(),
        GroupBy::Label(key) => format!("{LABEL}{key}"),
    }
}

fn groups<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<GroupBy>, D::Error> {
    let lists = Vec::<String>::deserialize(deserializer)?;
    let mut groups = Vec::new();
    for word in lists.iter().flat_map(|list| list.split(',')) {
        let group = match word {
            "day" => GroupBy::Day,
            "tenant" => GroupBy::Tenant,
            "owner" => GroupBy::Owner,
            "namespace" => GroupBy::Namespace,
            _ => match word.strip_prefix(LABEL) {
                Some(key) if !key.is_empty() => GroupBy::Label(key.to_owned()),
                _ => {
                    return Err(D::Error::custom(format!(
                        "{word:?} is none of day, tenant, owner, namespace and label:KEY"
                    )));
                }
            },
        };
        if groups.contains(&group) {
            return Err(D::Error::custom(format!("{word:?} is given twice")));
        }
        groups.push(group);
    }
    if groups.len() > MOST_GROUP_BY {
        return Err(D::Error::custom(format!("{} groups: there may be {MOST_GROUP_BY}", groups.len())));
    }
    Ok(groups)
}

fn format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Format>, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "json" => Ok(Some(Format::Json)),
        "csv" => Ok(Some(Format::Csv)),
        other => Err(D::Error::custom(format!("{other:?} is neither json nor csv"))),
    }
}

/// The most values of `groupBy`.
const MOST_GROUP_BY: usize = 8;

fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NaiveDate>, D::Error> {
    let day: NaiveDate = parsed(deserializer, "a day such as 2026-01-02")?;
    if (1970..10_000).contains(&day.year()) {
        return Ok(Some(day));
    }
    Err(D::Error::custom("the year must be between 1970 and 9999"))
}

#[cfg(test)]
mod tests;
