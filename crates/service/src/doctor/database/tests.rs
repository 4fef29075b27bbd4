use chrono::{DateTime, Utc};

use super::*;
use crate::doctor::Level;

fn server() -> Server {
    Server {
        version: "17.2".to_owned(),
        version_number: 170_002,
        fsync: true,
        full_page_writes: true,
        synchronous_commit: "on".to_owned(),
        synchronous_standby_names: String::new(),
        max_connections: 97,
        open_connections: 3,
        idle_session_timeout: 0,
        idle_in_transaction_session_timeout: 0,
        transaction_timeout: 0,
        statement_timeout: 0,
        ssl: false,
        user: "app".to_owned(),
        owns_audit: false,
        now: DateTime::UNIX_EPOCH,
        here: DateTime::UNIX_EPOCH,
        sees_all: true,
        snapshots: vec![OldSnapshot { holder: "psql".to_owned(), age: 5, seconds: Some(7) }],
    }
}

fn settings(url: &str) -> DatabaseSettings {
    DatabaseSettings { url: url.to_owned(), max_connections: 16 }
}

/// Returns what is found of a server that differs from a good one.
fn found(change: impl FnOnce(&mut Server)) -> Vec<Finding> {
    let mut server = server();
    change(&mut server);
    let local = settings("postgres://app@localhost/x");
    let mut findings = vec![version(&server)];
    findings.extend(durability(&server));
    findings.extend([
        replication(&server),
        encryption(&local, &server),
        connections(&local, &server),
        timeouts(&server),
        snapshots(&server),
    ]);
    findings
}

#[track_caller]
fn the_only_one(findings: Vec<Finding>, check: &str, level: Level) {
    let bad: Vec<_> = findings.iter().filter(|finding| finding.level != Level::Ok).collect();
    assert!(bad.len() == 1 && bad[0].check == check && bad[0].level == level, "{bad:#?}");
    assert!(bad[0].remedy.is_some());
}

#[test]
fn a_good_server_has_no_findings() {
    assert!(found(|_| {}).iter().all(|finding| finding.level == Level::Ok));
}

#[test]
fn old_transactions_are_found() {
    let old = |age, seconds| OldSnapshot { holder: "the standby b".to_owned(), age, seconds };
    for old in [old(2_000_000, None), old(5, Some(7200))] {
        the_only_one(found(|server| server.snapshots.push(old)), "database.snapshots", Level::Warning);
    }
}

#[test]
fn each_setting_that_endangers_a_promise_is_found() {
    type Change = fn(&mut Server);
    let cases: [(&str, Level, Change); 10] = [
        ("database.reachable", Level::Failure, |server| server.version_number = 130_009),
        ("database.fsync", Level::Failure, |server| server.fsync = false),
        ("database.full-page-writes", Level::Failure, |server| server.full_page_writes = false),
        ("database.synchronous-commit", Level::Failure, |server| server.synchronous_commit = "off".to_owned()),
        ("database.replication", Level::Warning, |server| {
            server.synchronous_standby_names = "*".to_owned();
            server.synchronous_commit = "local".to_owned();
        }),
        ("database.connections", Level::Failure, |server| server.max_connections = 15),
        ("database.connections", Level::Warning, |server| server.max_connections = 31),
        ("database.timeouts", Level::Warning, |server| server.transaction_timeout = 60_000),
        ("database.timeouts", Level::Warning, |server| server.idle_session_timeout = 10_000),
        ("database.replication", Level::Ok, |server| server.synchronous_standby_names = "*".to_owned()),
    ];
    for (check, level, change) in cases {
        let findings = found(change);
        match level {
            Level::Ok => assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}"),
            level => the_only_one(findings, check, level),
        }
    }
}

#[test]
fn a_server_elsewhere_has_to_prove_its_name() {
    let level = |url: &str, ssl| encryption(&settings(url), &Server { ssl, ..server() }).level;
    assert_eq!(level("postgres://u@db.example/x", false), Level::Warning);
    assert_eq!(level("postgres://u@db.example/x?sslmode=require", true), Level::Warning);
    assert_eq!(level("postgres://u@db.example/x?sslmode=verify-full", true), Level::Ok);
}

#[test]
fn migrations_are_compared_with_those_of_this_release() {
    let good = Migrations { newest: Some(3), ..Migrations::default() };
    for (migrations, usable, level) in [
        (good.clone(), true, Level::Ok),
        (Migrations { newer: vec![4], ..good.clone() }, true, Level::Warning),
        (Migrations { missing: vec![3], ..good.clone() }, false, Level::Failure),
        (Migrations { changed: vec![3], ..good.clone() }, false, Level::Failure),
        (Migrations { interrupted: Some(3), ..good }, false, Level::Failure),
    ] {
        let mut findings = Vec::new();
        assert_eq!(migrated(&migrations, &mut findings), usable, "{migrations:?}");
        assert!(findings.len() == 1 && findings[0].level == level, "{findings:?}");
    }
}

#[test]
fn a_clock_that_is_far_off_is_a_failure() {
    let now = Utc::now();
    let level = |seconds| clocks("x", "the database", now + TimeDelta::seconds(seconds), now, FAR).level;
    assert_eq!(
        [level(0), level(4), level(-6), level(59), level(-60)],
        [Level::Ok, Level::Ok, Level::Warning, Level::Warning, Level::Failure]
    );
}
