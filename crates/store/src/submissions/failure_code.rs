//! The failure code of a row, in SQL: the table of `submission/failure/rules.rs`, written as an expression.

use std::fmt::Write;

use sparkgate_submission::{FAILURE_RULES, FailureCode, FailureRule, MessageIs, ReasonIs, State};

/// Returns the states in which a submission can have one of these codes.
pub(super) fn states(codes: &[FailureCode]) -> Vec<State> {
    let is_possible =
        |state: &State| FAILURE_RULES.iter().any(|rule| codes.contains(&rule.code) && rule.states.contains(state));
    State::ALL.into_iter().filter(is_possible).collect()
}

/// Returns an expression for the code of a row of `submissions` that is in one of these states.
pub(crate) fn expression(states: &[State]) -> String {
    let mut sql = "CASE".to_owned();
    for rule in FAILURE_RULES.iter().filter(|rule| rule.states.iter().any(|state| states.contains(state))) {
        // Writing to a string can't fail.
        let _ = write!(sql, " WHEN {} THEN '{}'", condition(rule), rule.code);
    }
    sql + " END"
}

fn condition(rule: &FailureRule) -> String {
    let list = |words: &mut dyn Iterator<Item = &'static str>| {
        words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ")
    };
    let mut sql = format!("state IN ({})", list(&mut rule.states.iter().map(|state| state.as_str())));
    match rule.reason {
        ReasonIs::Anything => {}
        ReasonIs::Missing => sql += " AND reason IS NULL",
        ReasonIs::OneOf(reasons) => sql += &format!(" AND reason IN ({})", list(&mut reasons.iter().copied())),
        ReasonIs::BeginsWith(prefix) => sql += &format!(" AND starts_with(reason, '{prefix}')"),
    }
    match rule.exit_code {
        None => {}
        Some((i32::MIN, i32::MAX)) => sql += " AND exit_code IS NOT NULL",
        Some((first, last)) => sql += &format!(" AND exit_code BETWEEN {first} AND {last}"),
    }
    match rule.message {
        MessageIs::Anything => {}
        MessageIs::Present => sql += " AND message <> ''",
        MessageIs::Contains(part) => sql += &format!(" AND strpos(message, '{part}') > 0"),
    }
    sql
}
