//! `sparkgate usage`.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;
use serde::Deserialize;

use super::{Outcome, label};
use crate::{
    api::{Api, Call},
    document::{self, Usage},
    error::Error,
    options::Target,
    screen::{self, note},
    span::{Moment, NoMoment},
    table::{Cell, Column, cut, whole},
};

#[derive(Debug, Args)]
pub struct UsageCommand {
    #[command(flatten)]
    target: Target,
    /// One line for each day, tenant, owner, namespace or value of a label (label:KEY), separated by commas.
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    group_by: Vec<String>,
    /// The first day (UTC), such as 2026-01-31, or a time ago such as 7d [default: the first of the month].
    #[arg(long, value_name = "DAY")]
    since: Option<Day>,
    /// The first day after the range [default: tomorrow].
    #[arg(long, value_name = "DAY")]
    until: Option<Day>,
    /// Only submissions of this tenant.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Only submissions of this user.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Only submissions in this namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// Only submissions with this label; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Print comma-separated values, for spreadsheets.
    #[arg(long)]
    csv: bool,
}

/// A day in UTC: a date, or that of a moment.
#[derive(Debug, Clone, Copy)]
enum Day {
    Date(NaiveDate),
    Of(Moment),
}

impl std::str::FromStr for Day {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, NoMoment> {
        match text.parse() {
            Ok(date) => Ok(Self::Date(date)),
            Err(_) => text.parse().map(Self::Of),
        }
    }
}

impl Day {
    /// Formats the day for the API.
    fn date(self, now: DateTime<Utc>) -> String {
        match self {
            Self::Date(date) => date.to_string(),
            // The day is the part before the time.
            Self::Of(moment) => moment.rfc3339(now).split('T').next().unwrap_or_default().to_owned(),
        }
    }
}

/// The usage of a range of days.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct Report {
    since: String,
    until: String,
    group_by: Vec<String>,
    items: Vec<Group>,
    total: Usage,
}

#[derive(Deserialize)]
struct Group {
    group: BTreeMap<String, Option<String>>,
    #[serde(flatten)]
    usage: Usage,
}

const ACTION: &str = "reading usage";

impl UsageCommand {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let call = self.call(Utc::now());
        if self.csv {
            let body = api.send(&call.query("format", "csv").accept("text/csv, application/problem+json")).await?.body;
            let mut output = screen::Foreign::new();
            output.write(&body)?;
            output.finish()?;
            return Ok(0);
        }
        let body = api.send(&call).await?.body;
        if self.target.is_document() {
            self.target.document(&body)?;
            return Ok(0);
        }
        tell(&document::read(ACTION, &body)?)?;
        Ok(0)
    }

    fn call(&self, now: DateTime<Utc>) -> Call {
        let mut call = Call::get(ACTION, &["usage"])
            .query_if("since", self.since.map(|day| day.date(now)))
            .query_if("until", self.until.map(|day| day.date(now)))
            .query_if("tenant", self.tenant.as_ref())
            .query_if("owner", self.owner.as_ref())
            .query_if("namespace", self.namespace.as_ref());
        for group in &self.group_by {
            call = call.query("groupBy", group);
        }
        for (key, value) in &self.labels {
            call = call.query("label", format_args!("{key}={value}"));
        }
        call
    }
}

fn tell(report: &Report) -> Result<(), Error> {
    let titles: Vec<String> = report.group_by.iter().map(|name| title(name)).collect();
    let columns: Vec<Column<'_>> = titles.iter().map(|title| cut(title)).chain(AMOUNTS.map(whole)).collect();
    screen::table(&columns, &rows(report))?;
    note(&format!("usage from {} until before {} (UTC)", report.since, report.until));
    Ok(())
}

const AMOUNTS: [&str; 5] = ["DRIVER CORE-H", "EXECUTOR CORE-H", "CORE-H", "GIB-H", "COST"];

fn title(group: &str) -> String {
    group.strip_prefix("label:").unwrap_or(group).to_uppercase()
}

/// Returns a row for each group, and one with their sum if there are groups.
fn rows(report: &Report) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> = report
        .items
        .iter()
        .map(|item| {
            let value = |name: &String| Cell::new(item.group.get(name).and_then(Option::as_deref).unwrap_or("-"));
            report.group_by.iter().map(value).chain(amounts(&item.usage)).collect()
        })
        .collect();
    let names = report.group_by.iter().enumerate().map(|(nth, _)| Cell::new(if nth == 0 { "TOTAL" } else { "" }));
    rows.push(names.chain(amounts(&report.total)).collect());
    rows
}

fn amounts(usage: &Usage) -> [Cell; 5] {
    [
        Cell::new(&usage.driver.core_hours()),
        Cell::new(&usage.executors.core_hours()),
        Cell::new(&usage.total.core_hours()),
        Cell::new(&usage.total.gib_hours()),
        Cell::new(&usage.cost.as_ref().map(ToString::to_string).unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn table_has_a_row_for_each_group_and_the_total() {
        let text = r#"{"since": "2026-01-01", "until": "2026-02-01", "groupBy": ["tenant", "label:team"], "items": [
            {"group": {"tenant": "red", "label:team": "data"}, "driver": {"coreSeconds": 3600, "memoryByteSeconds": 0},
             "executors": {"coreSeconds": 5400.25, "memoryByteSeconds": 0},
             "total": {"coreSeconds": 9000.25, "memoryByteSeconds": 3865470566400}, "cost": {"amount": 1.5, "currency": "EUR"}},
            {"group": {"tenant": "red", "label:team": null}}],
            "total": {"total": {"coreSeconds": 9000.25, "memoryByteSeconds": 3865470566400}}}"#;
        let report: Report = document::documented("UsageReport", text);
        let columns: Vec<Column<'_>> = ["TENANT", "TEAM"].map(cut).into_iter().chain(AMOUNTS.map(whole)).collect();
        assert_eq!(
            anstream::adapter::strip_str(&table::layout(&columns, &rows(&report), None)).to_string(),
            "TENANT  TEAM  DRIVER CORE-H  EXECUTOR CORE-H  CORE-H  GIB-H  COST\n\
             red     data  1.00           1.50             2.50    1.00   1.50 EUR\n\
             red     -     0.00           0.00             0.00    0.00\n\
             TOTAL         0.00           0.00             2.50    1.00\n"
        );
    }

    #[test]
    fn days_are_dates_or_moments() {
        let now = DateTime::parse_from_rfc3339("2026-01-02T03:04:05Z").unwrap().to_utc();
        let date = |text: &str| text.parse::<Day>().map(|day| day.date(now));
        assert_eq!(date("2025-12-31").as_deref(), Ok("2025-12-31"));
        assert_eq!(date("7d").as_deref(), Ok("2025-12-26"));
        assert_eq!(date("2026-01-01T23:59:59Z").as_deref(), Ok("2026-01-01"));
        assert!(date("January").is_err());
    }
}
