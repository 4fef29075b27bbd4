//! `sparkgate usage`.

use serde_json::{Value, json};

use crate::cli::{
    played::{Played, json_answer},
    run::run,
};

fn used(cores: f64) -> Value {
    json!({"coreSeconds": cores, "memoryByteSeconds": cores * f64::from(1 << 30)})
}

fn report() -> Value {
    let usage = json!({"driver": used(3600.0), "executors": used(7200.0), "total": used(10800.0),
        "cost": {"amount": 1.234567, "currency": "EUR"}});
    let mut item = usage.clone();
    item["group"] = json!({"owner": "alice", "label:team": null});
    json!({"since": "2026-01-01", "until": "2026-01-03", "groupBy": ["owner", "label:team"], "items": [item], "total": usage})
}

#[test]
fn usage_is_a_table_with_the_total_below() {
    let gateway = Played::new(|_| json_answer(200, &report()));
    let arguments = [
        "usage",
        "--group-by",
        "owner,label:team",
        "--since",
        "2026-01-01",
        "--until",
        "2026-01-03",
        "--tenant",
        "red",
        "--label",
        "a=b",
    ];
    let ended = run(&gateway, &arguments);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "usage from 2026-01-01 until before 2026-01-03 (UTC)\n"));
    let words: Vec<Vec<&str>> = ended.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[1], ["alice", "-", "1.00", "2.00", "3.00", "3.00", "1.23", "EUR"], "{}", ended.stdout);
    assert_eq!(words[2], ["TOTAL", "1.00", "2.00", "3.00", "3.00", "1.23", "EUR"]);
    let query = "since=2026-01-01&until=2026-01-03&tenant=red&groupBy=owner&groupBy=label%3Ateam&label=a%3Db";
    assert_eq!(gateway.asked()[0].query, query);
    let ended = run(&gateway, &["usage", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), report());
}

#[test]
fn comma_separated_values_are_printed_as_the_gateway_sends_them() {
    let gateway = Played::new(|_| json_answer(200, &json!("as it is")));
    let ended = run(&gateway, &["usage", "--csv"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "\"as it is\"", ""));
    assert_eq!(gateway.asked()[0].query, "format=csv");
}
