//! The optional objects for Prometheus' operator and for Grafana.

use serde_json::{Value, json};

use crate::chart::helm::{find, refusal, template};

const ALL: &str = "metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.namespace=monitoring,metrics.rules.enabled=true,metrics.dashboard.enabled=true,metrics.rules.labels.release=prom";

#[test]
fn without_values_there_is_nothing_for_prometheus() {
    let kinds: Vec<_> = template(&[]).into_iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect();
    assert!(!kinds.iter().any(|kind| kind == "ServiceMonitor" || kind == "PrometheusRule"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "Service").count(), 1);
}

#[test]
fn rules_and_dashboard_are_those_of_the_deployment() {
    let objects = template(&["--set", ALL]);
    let rules: Value = serde_saphyr::from_str(include_str!("../../../deploy/monitoring/rules.yaml")).unwrap();
    let rule = find(&objects, "PrometheusRule", "sparkgate");
    assert_eq!(rule["spec"], rules);
    assert_eq!(rule["metadata"]["labels"]["release"], "prom");
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../deploy/monitoring/grafana-dashboard.json")).unwrap();
    let text = find(&objects, "ConfigMap", "sparkgate-dashboard")["data"]["sparkgate.json"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), dashboard);
}

#[test]
fn the_monitor_selects_a_service_of_the_management_port_and_prometheus_is_admitted() {
    let objects = template(&["--set", ALL]);
    let monitor = &find(&objects, "ServiceMonitor", "sparkgate")["spec"];
    let selected = monitor["selector"]["matchLabels"].as_object().unwrap();
    let services = objects.iter().filter(|object| object["kind"] == "Service");
    let selected: Vec<_> = services
        .filter(|service| selected.iter().all(|(key, value)| service["metadata"]["labels"][key] == *value))
        .collect();
    assert_eq!(selected.len(), 1, "{selected:?}");
    let port = &selected[0]["spec"]["ports"][0];
    assert_eq!((&port["name"], &port["targetPort"]), (&monitor["endpoints"][0]["port"], &json!("management")));
    let gateway = &find(&objects, "Deployment", "sparkgate")["spec"]["selector"]["matchLabels"];
    assert_eq!(&selected[0]["spec"]["selector"], gateway);

    let admitted = |set: &str| {
        let objects = template(&["--set", set]);
        let rules = find(&objects, "NetworkPolicy", "sparkgate")["spec"]["ingress"].as_array().unwrap().clone();
        rules.into_iter().find(|rule| rule["ports"][0]["port"] == "management").map(|rule| rule["from"].clone())
    };
    let prometheus = json!([{
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}},
    }]);
    assert_eq!(admitted(ALL), Some(prometheus));
    assert_eq!(admitted("replicas=1"), None);
    let own = format!("{ALL},networkPolicy.managementFrom[0].ipBlock.cidr=10.0.0.0/8");
    assert_eq!(admitted(&own), Some(json!([{"ipBlock": {"cidr": "10.0.0.0/8"}}])));
}

#[test]
fn prometheus_is_admitted_by_its_namespace_only() {
    let refusal = refusal(&["--set", "metrics.serviceMonitor.enabled=true"]);
    assert!(refusal.contains("set metrics.serviceMonitor.namespace"), "{refusal}");
    template(&["--set", "metrics.serviceMonitor.enabled=true,networkPolicy.enabled=false"]);
}

#[test]
fn a_wrong_interval_is_refused() {
    let refusal = refusal(&["--set", "metrics.serviceMonitor.interval=often"]);
    assert!(refusal.contains("interval"), "{refusal}");
}
