//! The traces of submissions.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::{
    attempts::{self, AttemptRecord},
    error::{Error, within},
    row::parse,
    store::Store,
};
use sparkgate_submission::{State, SubmissionId};

/// A submission that has ended, with what its spans show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTrace {
    pub id: SubmissionId,
    pub trace: String,
    pub tenant: String,
    pub namespace: String,
    pub created_at: DateTime<Utc>,
    /// In order; at least one.
    pub attempts: Vec<EndedAttempt>,
}

/// An attempt of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedAttempt {
    pub record: AttemptRecord,
    pub finished_at: DateTime<Utc>,
    /// Its states, and when they began.
    pub states: Vec<(State, DateTime<Utc>)>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    trace_context: String,
    tenant: String,
    namespace: String,
    created_at: DateTime<Utc>,
    #[sqlx(flatten)]
    attempt: attempts::Row,
    ended_at: DateTime<Utc>,
    states: Vec<String>,
    times: Vec<DateTime<Utc>>,
}

impl Row {
    fn read(self) -> Result<(EndedTrace, EndedAttempt), Error> {
        let id = self.id.as_str();
        let states = self.states.iter().zip(self.times).map(|(state, at)| Ok((parse(id, state)?, at)));
        let states = states.collect::<Result<_, Error>>()?;
        let attempt = EndedAttempt { record: self.attempt.read(id)?, finished_at: self.ended_at, states };
        let ended = EndedTrace {
            id: parse(id, id)?,
            trace: self.trace_context,
            tenant: self.tenant,
            namespace: self.namespace,
            created_at: self.created_at,
            attempts: Vec::new(),
        };
        Ok((ended, attempt))
    }
}

impl Store {
    /// Returns the trace contexts of these submissions. Those without one are missing.
    pub async fn traces(&self, ids: &[&SubmissionId]) -> Result<HashMap<SubmissionId, String>, Error> {
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        let statement = sqlx::query_as(
            "SELECT id, trace_context FROM submissions WHERE id = ANY($1) AND trace_context IS NOT NULL",
        )
        .bind(&ids)
        .fetch_all(&self.patient);
        let rows: Vec<(String, String)> = within("reading trace contexts", statement).await?;
        rows.into_iter().map(|(id, trace)| Ok((parse(&id, &id)?, trace))).collect()
    }

    /// Returns those of these submissions that belong to a trace and have ended with the attempt that is named.
    pub async fn ended_traces(&self, ended: &[(String, i32)]) -> Result<Vec<EndedTrace>, Error> {
        let (ids, attempts): (Vec<&str>, Vec<i32>) = ended.iter().map(|(id, attempt)| (id.as_str(), *attempt)).unzip();
        let statement = sqlx::query_as(
            "SELECT s.id, s.trace_context, s.tenant, s.namespace, s.created_at, a.*, a.finished_at AS ended_at, e.states, e.times
             FROM unnest($1::text[], $2::integer[]) AS ended (id, attempt)
             JOIN submissions s ON s.id = ended.id AND s.attempt = ended.attempt, LATERAL (
                 SELECT attempt, state, exit_code, reason, message, coalesce(names ->> 'driverPod', '') AS pod, pod_uid, node,
                     pod_ip, queued_at, started_at, finished_at
                 FROM attempts WHERE submission_id = s.id
                 UNION ALL
                 SELECT s.attempt, s.state, s.exit_code, s.reason, s.message, coalesce(s.names ->> 'driverPod', ''), s.pod_uid,
                     s.node, s.pod_ip, coalesce(s.queued_at, s.created_at), s.started_at, s.finished_at
             ) AS a, LATERAL (
                 SELECT coalesce(array_agg(state ORDER BY at, id), '{}') AS states, coalesce(array_agg(at ORDER BY at, id), '{}') AS times
                 FROM submission_events WHERE submission_id = s.id AND attempt = a.attempt
             ) AS e
             WHERE s.trace_context IS NOT NULL AND s.finished_at IS NOT NULL
             ORDER BY s.number, a.attempt",
        )
        .bind(ids)
        .bind(attempts)
        .fetch_all(&self.patient);
        let rows: Vec<Row> = within("reading ended submissions", statement).await?;
        let mut all = Vec::<EndedTrace>::new();
        for row in rows {
            let (ended, attempt) = row.read()?;
            match all.last_mut().filter(|last| last.id == ended.id) {
                Some(last) => last.attempts.push(attempt),
                None => all.push(EndedTrace { attempts: vec![attempt], ..ended }),
            }
        }
        Ok(all)
    }
}
