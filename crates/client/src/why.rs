//! Formats why a submission failed or waits.

use chrono::{DateTime, Utc};

use super::{
    clean,
    document::{PodEvent, Submission, Why},
    screen::note,
    span,
};

/// Returns the reason in one line: `OUT_OF_MEMORY: the driver …`.
pub(super) fn headline(why: &Why) -> String {
    let parts: Vec<&str> = [&*why.code, &*why.message].into_iter().filter(|part| !part.is_empty()).collect();
    clean::line(&parts.join(": ")).into_owned()
}

/// Returns the reason with all details: the headline, exit code and signal, Kubernetes' events, the end of the log.
pub(super) fn in_full(title: &str, why: &Why, now: DateTime<Utc>) -> String {
    let class = if why.class.is_empty() { String::new() } else { format!(" [{}]", clean::line(&why.class)) };
    let mut text = format!("\n{title}{class}: {}\n", headline(why));
    let mut facts = Vec::new();
    facts.extend(why.exit_code.map(|code| format!("exit code {code}")));
    facts.extend(why.signal.clone());
    facts.extend(why.reason.clone().map(|reason| format!("reason {reason}")));
    if !facts.is_empty() {
        text += &format!("  {}\n", clean::line(&facts.join(", ")));
    }
    if !why.events.is_empty() {
        text += "  Events of Kubernetes:\n";
        for event in &why.events {
            text += &format!("    {}\n", clean::line(&describe_event(event, now)));
        }
    }
    if let Some(tail) = why.log_tail.as_deref().filter(|tail| !tail.trim().is_empty()) {
        text += "  End of the log:\n";
        for line in clean::lines(tail.trim_end()).lines() {
            text += &format!("    {line}\n");
        }
    }
    text
}

fn describe_event(event: &PodEvent, now: DateTime<Utc>) -> String {
    let mut line = match event.at {
        Some(at) => format!("{} ago  ", span::between(at, now)),
        None => String::new(),
    };
    line += &format!("{}  {}", event.reason, event.message);
    if let Some(count) = event.count.filter(|count| *count > 1) {
        line += &format!(" ({count} times)");
    }
    line
}

/// Prints to standard error why the submission failed, if it did.
pub(super) fn tell_failure(submission: &Submission) {
    if let Some(failure) = &submission.failure {
        let tail = failure.log_tail.as_deref().map(str::trim_end).filter(|tail| !tail.is_empty());
        note(&format!("{} {}: {}", submission.id, submission.state, headline(failure)));
        if let Some(tail) = tail {
            note(&clean::lines(tail));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_is_printed_with_all_details() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let events = vec![PodEvent {
            at: now.checked_sub_signed(chrono::TimeDelta::seconds(90)),
            kind: "Warning".to_owned(),
            reason: "BackOff".to_owned(),
            message: "restarting".to_owned(),
            count: Some(3),
        }];
        let why = Why {
            code: "OUT_OF_MEMORY".to_owned(),
            class: "application".to_owned(),
            message: "more than it asked for".to_owned(),
            reason: Some("OOMKilled".to_owned()),
            exit_code: Some(137),
            signal: Some("SIGKILL".to_owned()),
            events,
            log_tail: Some("one\ntwo\u{1b}\n".to_owned()),
        };
        assert_eq!(
            in_full("Failure", &why, now),
            "\nFailure [application]: OUT_OF_MEMORY: more than it asked for\n  exit code 137, SIGKILL, reason OOMKilled\n  \
             Events of Kubernetes:\n    1m 30s ago  BackOff  restarting (3 times)\n  End of the log:\n    one\n    two\u{fffd}\n"
        );
        let bare = Why { code: "KILLED_ON_REQUEST".to_owned(), ..Why::default() };
        assert_eq!(in_full("Failure", &bare, now), "\nFailure: KILLED_ON_REQUEST\n");
        let uncoded = Why { message: "code 3".to_owned(), ..Why::default() };
        assert_eq!(headline(&uncoded), "code 3");
    }
}
