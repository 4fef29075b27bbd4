use axum::http::HeaderValue;
use chrono::NaiveDate;

use super::*;
use sparkgate_service::{UsageOf, UsageReport, Used};
use sparkgate_web::query::read;

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn usage(core_seconds: &str, cost: Option<&str>) -> UsageOf {
    let used = |amount: &str| Used { core_seconds: amount.to_owned(), memory_byte_seconds: "0".to_owned() };
    UsageOf {
        driver: used(core_seconds),
        executors: used("0"),
        total: used(core_seconds),
        estimated: used("0"),
        cost: cost.map(str::to_owned),
    }
}

fn document(owners: &[Option<&str>]) -> UsageDocument {
    let group = |owner: &Option<&str>| (vec![owner.map(str::to_owned)], usage("1.5", Some("0.25")));
    let total = usage("98765432109876543210.123456789", Some("3"));
    let report = UsageReport { total, groups: owners.iter().map(group).collect(), more: false };
    UsageDocument::new(day("2026-01-01"), day("2026-02-01"), vec!["owner".to_owned()], report, Some("EUR")).unwrap()
}

#[test]
fn a_range_begins_with_the_month_and_ends_with_today() {
    let (since, until) = range(None, None).unwrap();
    assert_eq!((since.day(), until), (1, Utc::now().date_naive() + Days::new(1)));
    let (since, until) = range(None, Some(day("2026-03-01"))).unwrap();
    assert_eq!((since, until), (day("2026-02-01"), day("2026-03-01")));
    let whole_year = range(Some(day("2024-01-01")), Some(day("2025-01-01")));
    assert!(whole_year.is_ok(), "366 days");
    for (since, until) in [("2024-01-01", "2025-01-02"), ("2026-01-01", "2026-01-01"), ("2026-01-02", "2026-01-01")] {
        assert!(range(Some(day(since)), Some(day(until))).is_err(), "{since} {until}");
    }
}

#[test]
fn groups_are_read_from_lists_and_repeated_parameters() {
    let query: UsageQuery = read("groupBy=day,label:example.com/team&groupBy=owner").unwrap();
    let groups = [GroupBy::Day, GroupBy::Label("example.com/team".to_owned()), GroupBy::Owner];
    assert_eq!(query.group_by, groups);
    for wrong in ["groupBy=label:", "groupBy=team", "groupBy=day,day", "since=2026-1", "format=xml", "until=0001-01-01"]
    {
        assert!(read::<UsageQuery>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn csv_is_written_only_for_a_client_that_prefers_it() {
    let format =
        |accept: &'static str| accepted(&[(header::ACCEPT, HeaderValue::from_static(accept))].into_iter().collect());
    for accept in ["text/csv", "text/csv, application/json;q=0.5", "text/csv, */*;q=0.1", "TEXT/CSV; header=present"] {
        assert_eq!(format(accept), Format::Csv, "{accept}");
    }
    for accept in
        ["*/*", "application/json", "text/csv;q=0.2, application/json", "text/csv, application/json", "image/png"]
    {
        assert_eq!(format(accept), Format::Json, "{accept}");
    }
    assert_eq!(accepted(&HeaderMap::new()), Format::Json);
}

#[test]
fn numbers_keep_all_their_digits() {
    let json = serde_json::to_string(&document(&[])).unwrap();
    assert!(json.contains("\"coreSeconds\":98765432109876543210.123456789"), "{json}");
    assert!(json.contains("\"cost\":{\"amount\":3,\"currency\":\"EUR\"}") && !json.contains("estimated"), "{json}");
}

#[test]
fn texts_of_users_are_neither_formulas_nor_further_cells() {
    let owners = [
        Some("=cmd|' /C calc'!A0"),
        Some("a\"b,c"),
        Some("line\r\nbreak"),
        Some("-1+1"),
        Some("@x"),
        None,
        Some("bob"),
    ];
    let text = csv::write(&document(&owners));
    let first: Vec<&str> = text.split("1.5,0,0,0,1.5,0,0,0,0.25,EUR\r\n").collect();
    let header = "owner,driver_core_seconds,driver_memory_byte_seconds,executor_core_seconds,executor_memory_byte_seconds,\
                  core_seconds,memory_byte_seconds,estimated_core_seconds,estimated_memory_byte_seconds,cost,currency\r\n";
    let expected = [
        &format!("{header}\"'=cmd|' /C calc'!A0\","),
        "\"a\"\"b,c\",",
        "\"line\r\nbreak\",",
        "\"'-1+1\",",
        "\"'@x\",",
        ",",
        "bob,",
        "",
    ];
    assert_eq!(first, expected);
}
