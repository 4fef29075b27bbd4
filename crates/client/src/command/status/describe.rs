//! Formats all details of a submission as text.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::{
    document::{EXECUTOR_STATES, Late, StartupStep, Submission, Usage},
    fields::Fields,
    span::{self, in_words},
    why,
};

/// Formats all that is known of a submission. `state` is its state as it is displayed.
pub(super) fn describe(submission: &Submission, state: &str, now: DateTime<Utc>) -> String {
    let mut fields = Fields::default();
    let at = |at: Option<DateTime<Utc>>| at.map(|at| moment(at, now));
    fields.add("ID", submission.id.clone());
    fields.add("Name", submission.name.clone());
    fields.add_styled("State", &format!("{state}{}", state_details(submission, now)));
    fields.add("Attempt", (submission.attempt > 1).then(|| submission.attempt.to_string()));
    fields.add("Owner", submission.owner.clone());
    fields.add("Namespace", submission.namespace.clone());
    fields.add("Labels", joined(submission.labels.iter().map(|(key, value)| format!("{key}={value}"))));
    fields.add("Queue", submission.queue.as_ref().map(|queue| in_queue(queue, submission)));
    fields.add("Spark", submission.spark_version.clone());
    fields.add("Application", submission.application_id.clone());
    fields.add("Created", at(submission.created_at));
    fields.add("Started", at(submission.started_at));
    fields.add("Finished", at(submission.finished_at));
    fields.add("Start", startup(&submission.startup));
    fields.add("Late", submission.late.as_ref().filter(|_| !submission.has_ended()).map(late));
    fields.add("Driver", driver(submission));
    fields.add("Executors", executors(submission));
    fields.add("Usage", submission.usage.as_ref().map(usage));
    let limits = submission.limits;
    let limits =
        [("start", limits.start_seconds), ("run", limits.run_seconds), ("kill grace", limits.kill_grace_seconds)];
    let limits = limits.into_iter().filter_map(|(what, limit)| Some(format!("{what} {}", in_words(limit?))));
    fields.add("Limits", joined(limits));
    let retries = submission.retries.iter().filter(|(_, most)| **most > 0);
    fields.add("Retries", joined(retries.map(|(kind, most)| format!("{kind} {most}"))));
    let mut text = fields.finish();
    for (title, why) in [("Waiting", &submission.waiting), ("Failure", &submission.failure)] {
        if let Some(why) = why {
            text += &why::in_full(title, why, now);
        }
    }
    text
}

fn late(late: &Late) -> String {
    let by = late.runs.map(|runs| format!(", the median of the last {runs} runs of its name"));
    format!("{} were expected{}", in_words(late.expected_seconds), by.unwrap_or_default())
}

/// Formats how long each step of a start took; the first one has no duration.
fn startup(steps: &[StartupStep]) -> Option<String> {
    let [_, steps @ ..] = steps else { return None };
    let total: f64 = steps.iter().map(|step| step.seconds).sum();
    let parts = joined(steps.iter().map(|step| format!("{} {:.1}s", step.step, step.seconds)));
    (!steps.is_empty()).then(|| format!("{total:.1}s: {parts}"))
}

fn in_queue(queue: &str, submission: &Submission) -> String {
    let priority = submission.priority.filter(|priority| *priority > 0).map(|priority| format!("priority {priority}"));
    let place = submission.queue_place.as_ref();
    let ahead = place.and_then(|place| place.ahead).map(|ahead| match ahead {
        0 => "next".to_owned(),
        ahead => format!("{ahead} before it"),
    });
    let estimate = place.and_then(|place| place.estimate).map(|estimate| {
        let (about, error) = (in_words(estimate.seconds), in_words(estimate.error_seconds));
        format!("admitted in about {about} (± {error}, by {} admissions)", estimate.admissions)
    });
    let details = joined(priority.into_iter().chain(ahead).chain(estimate));
    if details.is_empty() { queue.to_owned() } else { format!("{queue} ({details})") }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn state_details(submission: &Submission, now: DateTime<Utc>) -> String {
    let ran = submission.started_at.map(|at| span::between(at, submission.finished_at.unwrap_or(now)));
    let exit = submission.exit_code.map(|code| format!("exit code {code}"));
    let ran = match (submission.has_ended(), ran) {
        (true, ran) => ran.map(|ran| format!("after {ran}")),
        (false, Some(ran)) => Some(format!("for {ran}")),
        (false, None) => None,
    };
    let details = joined(ran.into_iter().chain(exit));
    if details.is_empty() { details } else { format!(" ({details})") }
}

fn moment(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("{} ({} ago)", at.to_rfc3339_opts(SecondsFormat::Secs, true), span::between(at, now))
}

fn driver(submission: &Submission) -> Option<String> {
    let driver = &submission.driver;
    let mut text = driver.pod.clone()?;
    if let Some(node) = &driver.node {
        text += &format!(" on {node}");
    }
    if let Some(ip) = &driver.ip {
        text += &format!(" ({ip})");
    }
    Some(text)
}

fn usage(usage: &Usage) -> String {
    let mut text = format!("{} core-hours, {} GiB-hours", usage.total.core_hours(), usage.total.gib_hours());
    if let Some(cost) = &usage.cost {
        text += &format!(", {cost}");
    }
    if usage.estimated.is_some() {
        text += " (partly estimated)";
    }
    text
}

/// Formats the counts of executors: known states in the order of the life cycle, then states that only a newer gateway
/// knows.
fn executors(submission: &Submission) -> String {
    let known = EXECUTOR_STATES.iter().filter_map(|state| submission.executors.get_key_value(*state));
    let others = submission.executors.iter().filter(|(state, _)| !EXECUTOR_STATES.contains(&state.as_str()));
    joined(known.chain(others).filter(|(_, count)| **count > 0).map(|(state, count)| format!("{count} {state}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    fn described(text: &str) -> String {
        let now = DateTime::parse_from_rfc3339("2026-01-02T04:00:00Z").unwrap().to_utc();
        let submission: Submission = document::read("reading", text.as_bytes()).unwrap();
        describe(&submission, &submission.state, now)
    }

    #[test]
    fn description_has_all_fields() {
        let text = r#"{"id": "driver-20260102030405-0007", "name": "Pi {state}", "state": "RUNNING", "owner": "alice",
            "namespace": "spark", "labels": {"team": "data", "a": "b"}, "sparkVersion": "4.3.0", "attempt": 2,
            "createdAt": "2026-01-02T03:04:05.123Z", "startedAt": "2026-01-02T03:05:00Z",
            "driver": {"pod": "pi-1-driver", "node": "n1", "ip": "10.0.0.3"},
            "executors": {"pending": 0, "running": 2, "failed": 1, "sleeping": 1},
            "usage": {"driver": {}, "executors": {}, "total": {"coreSeconds": 45000, "memoryByteSeconds": 7730941132800},
                "estimated": {"coreSeconds": 1}, "cost": {"amount": 0.504, "currency": "EUR"}, "attempts": []},
            "startup": [{"step": "queued", "seconds": 0}, {"step": "created", "seconds": 0.25}, {"step": "started", "seconds": 3}],
            "limits": {"startSeconds": 600, "runSeconds": 5400}, "retries": {"infrastructure": 2, "application": 0}}"#;
        assert_eq!(
            described(text).lines().collect::<Vec<_>>(),
            [
                "ID:          driver-20260102030405-0007",
                "Name:        Pi {state}",
                "State:       RUNNING (for 55m)",
                "Attempt:     2",
                "Owner:       alice",
                "Namespace:   spark",
                "Labels:      a=b, team=data",
                "Spark:       4.3.0",
                "Created:     2026-01-02T03:04:05Z (55m 54s ago)",
                "Started:     2026-01-02T03:05:00Z (55m ago)",
                "Start:       3.2s: created 0.2s, started 3.0s",
                "Driver:      pi-1-driver on n1 (10.0.0.3)",
                "Executors:   2 running, 1 failed, 1 sleeping",
                "Usage:       12.50 core-hours, 2.00 GiB-hours, 0.50 EUR (partly estimated)",
                "Limits:      start 10m, run 1h 30m",
                "Retries:     infrastructure 2",
            ]
        );
    }

    #[test]
    fn description_of_an_ended_submission_has_duration_and_failure() {
        let text = r#"{"id": "driver-1", "state": "FAILED", "startedAt": "2026-01-02T03:00:00Z", "exitCode": 3,
            "finishedAt": "2026-01-02T03:01:12Z",
            "failure": {"code": "APPLICATION_ERROR", "class": "application", "message": "the driver exited with code 3"}}"#;
        let text = described(text);
        assert!(text.contains("State:       FAILED (after 1m 12s, exit code 3)\n"), "{text}");
        assert!(
            text.ends_with("\nFailure [application]: APPLICATION_ERROR: the driver exited with code 3\n"),
            "{text}"
        );
        let waits = described(r#"{"id": "driver-1", "state": "QUEUED", "createdAt": "2026-01-02T03:58:00Z"}"#);
        assert!(waits.contains("State:       QUEUED\n"), "{waits}");
    }
}
