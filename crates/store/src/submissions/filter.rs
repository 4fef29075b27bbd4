//! The filter of a list of submissions.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder, types::Json};

use super::failure_code;
use crate::{row::words, scope::DEFAULT_TENANT};
use sparkgate_submission::{FailureCode, State};

/// All criteria have to match; an empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these.
    pub states: Vec<State>,
    pub id_prefix: Option<String>,
    pub name_prefix: Option<String>,
    /// A part of the name, whatever the case of its ASCII letters.
    pub name_part: Option<String>,
    /// The caller that submitted it.
    pub principal: Option<String>,
    /// Any of these, as the row alone says.
    pub failure_codes: Vec<FailureCode>,
    pub owner: Option<String>,
    pub namespace: Option<String>,
    /// The client's own id.
    pub client_id: Option<String>,
    pub tenant: Option<String>,
    pub queue: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// A Spark release such as `4.1.4`, or a line, `4.1`.
    pub spark_version: Option<String>,
    /// At or after this time.
    pub created_after: Option<DateTime<Utc>>,
    /// Before this time.
    pub created_before: Option<DateTime<Utc>>,
}

impl Filter {
    /// Appends the criteria to a `WHERE` clause. They are built for each filter, so that Postgres plans for the given ones and
    /// not for all possible ones.
    pub(crate) fn push_to(&self, query: &mut QueryBuilder<Postgres>, before: Option<i64>) {
        self.push_indexed_to(query, before);
        self.push_unindexed_to(query);
    }

    /// Appends the criteria for which there are no indexes.
    pub(super) fn push_unindexed_to(&self, query: &mut QueryBuilder<Postgres>) {
        if let Some(part) = &self.name_part {
            query.push(" AND strpos(lower(name), ").push_bind(part.to_ascii_lowercase()).push(") > 0");
        }
        if let Some(principal) = &self.principal {
            query.push(" AND principal = ").push_bind(principal.clone());
        }
        if !self.failure_codes.is_empty() {
            let code = failure_code::expression(&failure_code::states(&self.failure_codes));
            let codes: Vec<&str> = self.failure_codes.iter().map(|code| code.as_str()).collect();
            query.push(format_args!(" AND {code} = ANY(")).push_bind(codes).push(")");
        }
        if let Some(version) = &self.spark_version {
            query.push(" AND (spark_version = ").push_bind(version.clone());
            query.push(" OR starts_with(spark_version, ").push_bind(format!("{version}.")).push("))");
        }
    }

    /// Returns whether all criteria have an index. A page of the others looks through a bounded number of submissions.
    pub(super) fn is_indexed(&self) -> bool {
        let Self { name_part, principal, failure_codes, spark_version, .. } = self;
        name_part.is_none() && principal.is_none() && failure_codes.is_empty() && spark_version.is_none()
    }

    /// Appends the criteria for which there are indexes.
    pub(super) fn push_indexed_to(&self, query: &mut QueryBuilder<Postgres>, before: Option<i64>) {
        if let Some(number) = before {
            query.push(" AND number < ").push_bind(number);
        }
        if !self.states.is_empty() {
            query.push(" AND state = ANY(").push_bind(words(self.states.iter().copied())).push(")");
        }
        if !self.failure_codes.is_empty() {
            let states = failure_code::states(&self.failure_codes);
            query.push(" AND state = ANY(").push_bind(words(states)).push(")");
        }
        if let Some(prefix) = &self.id_prefix {
            // As below.
            query.push(" AND id >= ").push_bind(prefix.clone());
            query.push(" AND id < ").push_bind(format!("{prefix}\u{10ffff}"));
        }
        if let Some(prefix) = &self.name_prefix {
            // The column is compared bytewise, and no name continues the prefix with the last code point of Unicode.
            query.push(" AND name >= ").push_bind(prefix.clone());
            query.push(" AND name < ").push_bind(format!("{prefix}\u{10ffff}"));
        }
        if let Some(owner) = &self.owner {
            query.push(" AND owner = ").push_bind(owner.clone());
        }
        if let Some(namespace) = &self.namespace {
            query.push(" AND namespace = ").push_bind(namespace.clone());
        }
        if let Some(id) = &self.client_id {
            query.push(" AND client_id = ").push_bind(id.clone());
        }
        if let Some(tenant) = &self.tenant {
            query.push(" AND tenant = ").push_bind(tenant.clone());
            if tenant != DEFAULT_TENANT {
                // Lets the planner use the index of tenants, which has no rows of the default one.
                query.push(format_args!(" AND tenant <> '{DEFAULT_TENANT}'"));
            }
        }
        if let Some(queue) = &self.queue {
            query.push(" AND queue = ").push_bind(queue.clone());
        }
        if !self.labels.is_empty() {
            // The first condition matches the partial index, which contains only submissions with labels.
            query.push(" AND labels <> '{}' AND labels @> ").push_bind(Json(self.labels.clone()));
        }
        if let Some(time) = self.created_after {
            query.push(" AND created_at >= ").push_bind(time);
        }
        if let Some(time) = self.created_before {
            query.push(" AND created_at < ").push_bind(time);
        }
    }
}
