//! Each name in the dashboard and the rules is one that exists.

use std::collections::BTreeSet;

use serde_json::Value;
use sparkgate::metrics::{Description, Kind, descriptions};

pub(crate) const RULES: &str = include_str!("../../../deploy/monitoring/rules.yaml");
const TESTS: &str = include_str!("../../../deploy/monitoring/rules.test.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/monitoring/grafana-dashboard.json");
const OPERATIONS: &str = include_str!("../../../docs/operate/operations.md");

/// Returns all names of metrics and recording rules in a text.
fn named(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c: char| !is_part(c));
    words.filter(|word| ["sparkgate_", "sparkgate:", "process_"].iter().any(|start| word.starts_with(start))).collect()
}

/// Returns the rules with this key, `record` or `alert`.
fn rules(key: &str) -> Vec<Value> {
    let rules: Value = serde_saphyr::from_str(RULES).unwrap();
    let rules = rules["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    rules.filter(|rule| rule[key].is_string()).cloned().collect()
}

/// Returns the series of a metric under which Prometheus stores it.
fn series(Description { name, kind, .. }: &Description) -> Vec<String> {
    match kind {
        Kind::Histogram => ["bucket", "sum", "count"].iter().map(|part| format!("{name}_{part}")).collect(),
        Kind::Counter | Kind::Gauge => vec![(*name).to_owned()],
    }
}

#[test]
fn rules_alerts_and_dashboard_name_existing_metrics() {
    let recorded: Vec<String> =
        rules("record").iter().map(|rule| rule["record"].as_str().unwrap().to_owned()).collect();
    let known: BTreeSet<String> = descriptions().iter().flat_map(series).chain(recorded.iter().cloned()).collect();
    for (place, text) in [("rules", RULES), ("tests of the rules", TESTS), ("dashboard", DASHBOARD)] {
        let unknown: Vec<_> = named(text).into_iter().filter(|name| !known.contains(*name)).collect();
        assert!(unknown.is_empty(), "{place}: {unknown:?}");
    }
    assert!(named(DASHBOARD).len() > 30 && named(RULES).len() > 20, "the names are found");
    for recorded in recorded {
        let uses = [RULES, DASHBOARD].iter().map(|text| text.matches(&recorded).count()).sum::<usize>();
        assert!(uses > 1, "{recorded} is recorded and not used");
    }
}

/// A label that a metric doesn't have would select nothing, or make an aggregate of one.
#[test]
fn labels_in_rules_and_dashboard_exist() {
    let of_scrapes = ["job", "instance", "namespace", "le", "alertname", "alertstate", "severity"];
    let known: BTreeSet<&str> =
        descriptions().iter().flat_map(|metric| metric.labels.iter().copied()).chain(of_scrapes).collect();
    for text in [RULES, DASHBOARD] {
        let lists = text.split("by (").skip(1).map(|rest| rest.split_once(')').unwrap().0);
        for label in lists.flat_map(|list| list.split(", ")) {
            assert!(known.contains(label), "{label}");
        }
    }
}

#[test]
fn each_alert_has_a_test_and_a_section_of_the_runbook() {
    let alerts = rules("alert");
    assert!(alerts.len() > 8);
    for alert in alerts {
        let name = alert["alert"].as_str().unwrap();
        assert!(OPERATIONS.contains(&format!("\n### {name}\n")), "docs/operate/operations.md has no section {name}");
        let anchor = format!("docs/operate/operations.md#{}", name.to_lowercase());
        assert_eq!(alert["annotations"]["runbook"], anchor, "{name}");
        assert!(
            TESTS.contains(&format!("alertname: {name}")) || TESTS.contains(&format!("alertname=\"{name}\"")),
            "{name}"
        );
    }
}

#[test]
fn no_panel_of_the_dashboard_overlaps_another() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut taken = BTreeSet::new();
    for panel in panels {
        let side = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(x < 24 && taken.insert((x, y)), "{} at {x}, {y}", panel["title"]);
            }
        }
    }
}
