//! The spans of submissions that have ended, and of their attempts: from the times in their rows, so that no span is open as long as
//! a job runs, and whatever became of the replicas meanwhile.

use std::time::SystemTime;

use sparkgate_common::error::error_chain;
use sparkgate_store::{AttemptRecord, EndedAttempt, EndedTrace, Store};
use sparkgate_submission::{FailureCode, State};
use sparkgate_traces::{KeyValue, Moment, Span, attribute};

/// Records the spans of submissions whose ends were numbered, if they belong to traces.
pub(super) async fn record(store: Store, ended: Vec<(String, i32)>) {
    match store.ended_traces(&ended).await {
        Ok(all) => all.iter().for_each(record_one),
        Err(error) => tracing::debug!("spans of ended submissions are missing: {}", error_chain(&error)),
    }
}

fn record_one(ended: &EndedTrace) {
    let Some(last) = ended.attempts.last() else { return };
    let span = Span::for_past("submission", &ended.trace, ended.created_at.into(), || {
        [
            KeyValue::new(attribute::SUBMISSION_ID, ended.id.to_string()),
            KeyValue::new(attribute::TENANT, ended.tenant.clone()),
            KeyValue::new(attribute::K8S_NAMESPACE_NAME, ended.namespace.clone()),
            KeyValue::new(attribute::ATTEMPTS, i64::from(last.record.attempt)),
        ]
    });
    if !span.is_recorded() {
        return;
    }
    mark(&span, &last.record);
    for attempt in &ended.attempts {
        let EndedAttempt { record, finished_at, states } = attempt;
        let child = span.past_child("attempt", record.queued_at.into(), || {
            [
                KeyValue::new(attribute::SUBMISSION_ID, ended.id.to_string()),
                KeyValue::new(attribute::ATTEMPT, i64::from(record.attempt)),
                KeyValue::new(attribute::K8S_NAMESPACE_NAME, ended.namespace.clone()),
                KeyValue::new(attribute::K8S_POD_NAME, record.pod.clone()),
            ]
        });
        if let Some(uid) = &record.pod_uid {
            child.set(attribute::K8S_POD_UID, uid.clone());
        }
        if let Some(node) = &record.node {
            child.set(attribute::K8S_NODE_NAME, node.clone());
        }
        child.add(states.iter().map(|(state, at)| Moment { name: state.as_str(), at: SystemTime::from(*at) }));
        mark(&child, record);
        child.end_at((*finished_at).into());
    }
    span.end_at(last.finished_at.into());
}

/// Adds how an attempt ended. A kill is no error.
fn mark(span: &Span, attempt: &AttemptRecord) {
    let AttemptRecord { state, exit_code, reason, message, .. } = attempt;
    span.set(attribute::STATE, state.as_str());
    if let Some(exit_code) = exit_code {
        span.set(attribute::EXIT_CODE, i64::from(*exit_code));
    }
    let Some(code) = FailureCode::for_end(*state, *exit_code, reason.as_deref(), message.as_deref()) else { return };
    span.set(attribute::FAILURE_CODE, code.as_str());
    if *state != State::Killed {
        span.fail(code.as_str());
    }
}
