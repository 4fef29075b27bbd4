//! Usage as comma-separated values (RFC 4180).

use axum::{
    http::header,
    response::{IntoResponse, Response},
};

use super::document::{Usage, UsageDocument};

const COLUMNS: [&str; 10] = [
    "driver_core_seconds",
    "driver_memory_byte_seconds",
    "executor_core_seconds",
    "executor_memory_byte_seconds",
    "core_seconds",
    "memory_byte_seconds",
    "estimated_core_seconds",
    "estimated_memory_byte_seconds",
    "cost",
    "currency",
];

/// Returns the response: a line for each group, or one of the total if there are no groups.
pub(super) fn response(document: &UsageDocument) -> Response {
    let disposition = format!("attachment; filename=\"usage-{}-{}.csv\"", document.since, document.until);
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8; header=present".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::VARY, "accept".to_owned()),
    ];
    (headers, write(document)).into_response()
}

pub(super) fn write(document: &UsageDocument) -> String {
    let mut text = String::new();
    let names = document.group_by.iter().map(|name| cell(name)).chain(COLUMNS.map(str::to_owned));
    line(&mut text, names);
    if document.group_by.is_empty() {
        line(&mut text, amounts(&document.total));
    }
    for item in &document.items {
        let value = |name| item.group.get(name).and_then(Option::as_deref).map(cell).unwrap_or_default();
        line(&mut text, document.group_by.iter().map(value).chain(amounts(&item.usage)));
    }
    text
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    text.push_str(&cells.collect::<Vec<_>>().join(","));
    text.push_str("\r\n");
}

fn amounts(usage: &Usage) -> impl Iterator<Item = String> {
    let Usage { driver, executors, total, estimated, cost } = usage;
    let mut cells = Vec::with_capacity(COLUMNS.len());
    for used in [Some(driver), Some(executors), Some(total), estimated.as_ref()] {
        let of = |text: Option<&str>| text.unwrap_or("0").to_owned();
        cells.push(of(used.map(|used| used.core_seconds.as_str())));
        cells.push(of(used.map(|used| used.memory_byte_seconds.as_str())));
    }
    cells.push(cost.as_ref().map(|cost| cost.amount.as_str().to_owned()).unwrap_or_default());
    cells.push(cost.as_ref().and_then(|cost| cost.currency.as_deref()).map(cell).unwrap_or_default());
    cells.into_iter()
}

/// Quotes a text of a user. A spreadsheet would take one that begins like a formula for a formula, so it gets an apostrophe before
/// it, as OWASP recommends.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = text.replace('"', "\"\"");
    match is_formula {
        true => format!("\"'{text}\""),
        false if text.contains([',', '"', '\r', '\n', ';', '\'']) => format!("\"{text}\""),
        false => text,
    }
}
