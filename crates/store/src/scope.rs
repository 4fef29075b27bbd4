//! The submissions that a caller may read or change.

use std::sync::Arc;

use sqlx::{Postgres, QueryBuilder};

/// The tenant of submissions that were accepted without tenants.
pub const DEFAULT_TENANT: &str = "default";

/// A set of submissions, by tenant and by the principal that submitted them. The only place that writes this condition in SQL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope(Option<Arc<Part>>);

/// A part of an installation's submissions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Part {
    /// All submissions of these tenants.
    tenants: Vec<String>,
    /// In these tenants, those of one principal.
    own: Vec<String>,
    principal: String,
}

impl Scope {
    /// Returns the scope of everything: for the installation's own loops, and for callers that may see all tenants.
    pub fn installation() -> Self {
        Self(None)
    }

    /// Returns the scope of all submissions of `tenants`, and of the submissions of `principal` in the tenants `own`.
    pub fn of(tenants: Vec<String>, own: Vec<String>, principal: &str) -> Self {
        // Without tenants for its own submissions, a principal makes no difference.
        let principal = if own.is_empty() { String::new() } else { principal.to_owned() };
        Self(Some(Arc::new(Part { tenants, own, principal })))
    }

    /// Returns whether a submission is in the scope.
    pub fn covers(&self, tenant: &str, principal: &str) -> bool {
        let has = |tenants: &[String]| tenants.iter().any(|one| one == tenant);
        self.0.as_ref().is_none_or(|part| has(&part.tenants) || (part.principal == principal && has(&part.own)))
    }

    /// Returns whether no submission can be in the scope.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(|part| part.tenants.is_empty() && part.own.is_empty())
    }

    /// Appends the condition that the row `row` of `submissions` is in the scope.
    pub(crate) fn push_condition(&self, query: &mut QueryBuilder<Postgres>, row: &str) {
        let Some(part) = &self.0 else {
            query.push("true");
            return;
        };
        query.push(format_args!("({row}.tenant = ANY(")).push_bind(part.tenants.clone()).push(")");
        if !part.own.is_empty() {
            query.push(format_args!(" OR {row}.principal = ")).push_bind(part.principal.clone());
            query.push(format_args!(" AND {row}.tenant = ANY(")).push_bind(part.own.clone()).push(")");
        }
        query.push(")");
        if ![&part.tenants, &part.own].iter().any(|tenants| tenants.iter().any(|tenant| tenant == DEFAULT_TENANT)) {
            // Lets the planner use the index of tenants, which has no rows of the default one.
            query.push(format_args!(" AND {row}.tenant <> '{DEFAULT_TENANT}'"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope::of(vec!["red".to_owned()], vec!["green".to_owned()], "corp:alice")
    }

    #[test]
    fn a_scope_covers_its_tenants_and_own_submissions() {
        assert!(scope().covers("red", "corp:bob") && scope().covers("green", "corp:alice"));
        assert!(!scope().covers("green", "corp:bob") && !scope().covers("blue", "corp:alice"));
        assert!(Scope::installation().covers("blue", "corp:bob") && !Scope::installation().is_empty());
        assert!(Scope::of(vec![], vec![], "corp:alice").is_empty() && !scope().is_empty());
    }

    #[test]
    fn scopes_of_the_same_submissions_are_equal() {
        let of = |own: &[&str], principal| {
            Scope::of(vec!["red".to_owned()], own.iter().map(|own| (*own).to_owned()).collect(), principal)
        };
        assert_eq!(of(&[], "corp:alice"), of(&[], "corp:bob"));
        assert_ne!(of(&["green"], "corp:alice"), of(&["green"], "corp:bob"));
        assert_ne!(of(&["green"], "corp:alice"), of(&[], "corp:alice"));
        assert_ne!(of(&[], "corp:alice"), Scope::installation());
    }

    #[test]
    fn the_condition_names_tenants_and_principal() {
        let text = |scope: &Scope| {
            let mut query = QueryBuilder::new("");
            scope.push_condition(&mut query, "s");
            query.into_string()
        };
        assert_eq!(text(&Scope::installation()), "true");
        let condition = "(s.tenant = ANY($1) OR s.principal = $2 AND s.tenant = ANY($3)) AND s.tenant <> 'default'";
        assert_eq!(text(&scope()), condition);
        assert_eq!(text(&Scope::of(vec!["default".to_owned()], vec![], "")), "(s.tenant = ANY($1))");
    }
}
