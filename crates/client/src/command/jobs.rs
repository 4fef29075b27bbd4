//! `sparkgate jobs`.

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Outcome;
use crate::{
    api::{Api, Call},
    clean, document,
    error::Error,
    fields::Fields,
    options::{Gateway, ListFormat},
    screen::{self, note},
    span,
    table::{Cell, Column, cut, whole},
};
use sparkgate_submission::headline_of_row;

/// Shows the jobs, each with its last runs; with a name, one job.
#[derive(Debug, Args)]
pub struct Jobs {
    #[command(flatten)]
    gateway: Gateway,
    /// Output format: a text table, only names (name), the gateway's JSON unchanged, or the same as YAML.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", help_heading = "Gateway")]
    output: ListFormat,
    /// The job: the name of its submissions.
    #[arg(value_name = "NAME", conflicts_with_all = ["failing", "prefix", "limit"])]
    name: Option<String>,
    /// Only jobs whose last run failed.
    #[arg(long)]
    failing: bool,
    /// Only jobs whose name has this prefix.
    #[arg(long = "name", value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only jobs of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Maximum number of jobs to list.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
}

/// A job, as far as it is displayed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Job {
    name: String,
    tenant: String,
    success_rate: Option<f64>,
    last_success: Option<RunEnd>,
    usual_failure: Option<UsualFailure>,
    median_seconds: Option<f64>,
    p90_seconds: Option<f64>,
    next_expected_at: Option<DateTime<Utc>>,
    runs: Vec<Run>,
    changed_since_success: Option<ChangedSince>,
    startup: Startup,
    advice: Vec<Advice>,
}

/// How long the steps of its starts took.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Startup {
    steps: Vec<Step>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Step {
    step: String,
    median_seconds: f64,
    p90_seconds: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RunEnd {
    id: String,
    at: Option<DateTime<Utc>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UsualFailure {
    code: String,
    count: u64,
    message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Run {
    id: String,
    state: String,
    created_at: Option<DateTime<Utc>>,
    seconds: Option<f64>,
    failure: Option<Failure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChangedSince {
    success: String,
    changes: Vec<Change>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Change {
    part: String,
    before: Option<String>,
    after: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Advice {
    property: String,
    suggested: Option<String>,
    reason: String,
}

#[derive(Deserialize)]
struct Documents {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
}

const COLUMNS: [Column<'static>; 8] = [
    cut("JOB"),
    cut("TENANT"),
    whole("RUNS"),
    whole("STATE"),
    whole("AGE"),
    whole("SUCCEEDED"),
    whole("MEDIAN"),
    cut("CAUSE"),
];
/// The runs that a strip has.
const STRIP: usize = 10;

impl Jobs {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        match &self.name {
            Some(name) => self.one(&api, name).await,
            None => self.list(&api).await,
        }
    }

    async fn one(&self, api: &Api, name: &str) -> Outcome {
        let call = Call::get("reading the job", &["jobs", name]).query_if("tenant", self.tenant.as_ref());
        let answer = api.send(&call).await?;
        if self.output.is_document() {
            self.output.document(&answer.body)?;
            return Ok(0);
        }
        let job: Job = document::read(call.action(), &answer.body)?;
        if matches!(self.output, ListFormat::Name) {
            let ids: String = job.runs.iter().map(|run| format!("{}\n", clean::line(&run.id))).collect();
            return screen::text(&ids).map(|()| 0);
        }
        screen::text(&describe(&job, Utc::now()))?;
        Ok(0)
    }

    async fn list(&self, api: &Api) -> Outcome {
        let call = Call::get("listing jobs", &["jobs"])
            .query("limit", self.limit)
            .query_if("failing", self.failing.then_some(true))
            .query_if("name", self.prefix.as_ref())
            .query_if("tenant", self.tenant.as_ref());
        let answer = api.send(&call).await?;
        if self.output.is_document() {
            self.output.document(&answer.body)?;
            return Ok(0);
        }
        let Documents { items, next } = document::read(call.action(), &answer.body)?;
        let jobs = items.iter().map(|item| document::read(call.action(), item.get().as_bytes()));
        let jobs: Vec<Job> = jobs.collect::<Result<_, Error>>()?;
        if matches!(self.output, ListFormat::Name) {
            let names: String = jobs.iter().map(|job| format!("{}\n", clean::line(&job.name))).collect();
            return screen::text(&names).map(|()| 0);
        }
        let now = Utc::now();
        screen::table(&COLUMNS, &jobs.iter().map(|job| row(job, now)).collect::<Vec<_>>())?;
        match next {
            Some(_) => note("there are more: use a larger --limit, --failing or --name"),
            None if jobs.is_empty() => note("no jobs"),
            None => {}
        }
        Ok(0)
    }
}

fn row(job: &Job, now: DateTime<Utc>) -> Vec<Cell> {
    let last = job.runs.first();
    let state = last.map(|run| run.state.as_str()).unwrap_or_default();
    let age = last.and_then(|run| run.created_at).map(|at| span::between(at, now));
    let cause = last.and_then(|run| run.failure.as_ref()).map(|failure| failure.message.as_str());
    vec![
        Cell::new(&job.name),
        Cell::new(&job.tenant),
        Cell::new(&strip(&job.runs)),
        Cell::styled(state, screen::style_of(state)),
        Cell::new(&age.unwrap_or_default()),
        Cell::new(&job.success_rate.map(percent).unwrap_or_default()),
        Cell::new(&job.median_seconds.map(took).unwrap_or_default()),
        Cell::new(cause.map(headline_of_row).unwrap_or_default()),
    ]
}

/// Formats runs as characters, the newest on the right: `+` succeeded, `x` failed, `k` was killed, `.` goes on.
fn strip(runs: &[Run]) -> String {
    let run = |run: &Run| match run.state.as_str() {
        "FINISHED" => '+',
        "FAILED" | "ERROR" | "LOST" => 'x',
        "KILLED" => 'k',
        _ => '.',
    };
    runs.iter().take(STRIP).rev().map(run).collect()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn took(seconds: f64) -> String {
    span::in_words(seconds.round().max(0.0) as u64)
}

/// Formats a job with all that its runs tell.
fn describe(job: &Job, now: DateTime<Utc>) -> String {
    let mut fields = Fields::default();
    fields.add("Job", job.name.clone());
    fields.add("Tenant", job.tenant.clone());
    fields.add("Runs", format!("{} (+ succeeded, x failed, k killed, . goes on)", strip(&job.runs)));
    fields.add("Succeeded", job.success_rate.map(|rate| format!("{} of {} runs", percent(rate), job.runs.len())));
    let p90 = job.p90_seconds.map(|p90| format!(", {} or less in nine of ten", took(p90)));
    fields.add(
        "Took",
        job.median_seconds.map(|median| format!("{} in the median{}", took(median), p90.unwrap_or_default())),
    );
    let success = job.last_success.as_ref();
    let at = success.and_then(|end| Some(format!("{} ago: {}", span::between(end.at?, now), end.id)));
    fields.add("Last good", at);
    let next = job.next_expected_at.map(|at| match at > now {
        true => format!("in {}", span::between(now, at)),
        false => format!("was expected {} ago", span::between(at, now)),
    });
    fields.add("Next", next);
    let last = job.runs.first();
    let failed = last.and_then(|run| Some((run, run.failure.as_ref()?)));
    fields.add("Last run", last.map(|run| format!("{} {}", run.state, run.id)));
    fields.add("Cause", failed.map(|(_, failure)| failure.message.clone()));
    let usual = job.usual_failure.as_ref().map(|usual| {
        let message = usual.message.as_deref().map(headline_of_row).unwrap_or_default();
        format!("{} ({}): {message}", usual.code, usual.count)
    });
    fields.add("Usually", usual);
    let mut text = fields.finish();
    if let Some(ChangedSince { success, changes }) = &job.changed_since_success {
        text += &clean::line(&format!("Changed since {success} succeeded:"));
        text += if changes.is_empty() { " nothing in the request\n" } else { "\n" };
        for Change { part, before, after } in changes {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
            text += &format!("  {}\n", clean::line(&format!("{part}: {} → {}", value(before), value(after))));
        }
    }
    for Step { step, median_seconds, p90_seconds } in &job.startup.steps {
        let line =
            format!("Start: {step}: {median_seconds:.1} s in the median, {p90_seconds:.1} s or less in nine of ten");
        text += &format!("{}\n", clean::line(&line));
    }
    for Advice { property, suggested, reason } in &job.advice {
        let suggested = suggested.as_ref().map(|size| format!("={size}")).unwrap_or_default();
        text += &format!("{}\n", clean::line(&format!("Size: {property}{suggested}: {reason}")));
    }
    let took = |run: &Run| run.seconds.map(|seconds| format!(" after {}", took(seconds))).unwrap_or_default();
    for run in job.runs.iter().take(STRIP) {
        let age = run.created_at.map(|at| format!(", {} ago", span::between(at, now))).unwrap_or_default();
        text += &format!("  {}\n", clean::line(&format!("{}  {}{}{age}", run.id, run.state, took(run))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_described_with_what_has_changed_and_what_is_advised() {
        let job: Job = serde_json::from_str(
            r#"{"name": "etl", "tenant": "red", "successRate": 0.5, "medianSeconds": 90, "p90Seconds": 120,
                "lastSuccess": {"id": "driver-1", "at": "2026-01-02T03:00:00Z"}, "nextExpectedAt": "2026-01-02T06:00:00Z",
                "usualFailure": {"code": "APPLICATION_ERROR", "count": 1, "message": "ValueError: no\nat line 3"},
                "runs": [{"id": "driver-2", "state": "FAILED", "createdAt": "2026-01-02T04:00:00Z", "failure": {"message": "ValueError: no"}},
                         {"id": "driver-1", "state": "FINISHED", "createdAt": "2026-01-02T02:58:00Z", "seconds": 90.2}],
                "changedSinceSuccess": {"success": "driver-1", "changes": [{"part": "spark.executor.memory", "before": "4g"}]},
                "startup": {"runs": 2, "steps": [{"step": "scheduled", "runs": 2, "medianSeconds": 4, "p90Seconds": 31.25}]},
                "advice": [{"property": "spark.driver.memory", "suggested": "1024m", "reason": "it is too large"}]}"#,
        )
        .unwrap();
        let now = "2026-01-02T05:00:00Z".parse().unwrap();
        let text = describe(&job, now);
        for line in [
            "Runs:        +x (",
            "Succeeded:   50 % of 2 runs",
            "Took:        1m 30s in the median, 2m or less in nine of ten",
            "Last good:   2h ago: driver-1",
            "Next:        in 1h",
            "Usually:     APPLICATION_ERROR (1): ValueError: no\n",
            "Start: scheduled: 4.0 s in the median, 31.2 s or less in nine of ten\n",
            "Changed since driver-1 succeeded:\n  spark.executor.memory: 4g → –\n",
            "Size: spark.driver.memory=1024m: it is too large\n",
            "  driver-1  FINISHED after 1m 30s, 2h 2m ago\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
