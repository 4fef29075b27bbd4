//! Runs Helm on the chart.

use std::{
    collections::BTreeMap,
    process::{Command, Output},
};

use serde_json::Value;

pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/sparkgate");
/// The values that give the objects of `deploy/kubernetes.yaml`.
pub(crate) const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/sparkgate/ci/manifests.yaml");
/// Values that use every part of the chart.
pub(crate) const TENANTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/sparkgate/ci/tenants.yaml");

/// Runs Helm, without the settings and repositories of this account.
pub(crate) fn helm(arguments: &[&str]) -> Output {
    let helm = std::env::var_os("SPARKGATE_HELM")
        .expect("SPARKGATE_HELM names no Helm: run `make test`, or set it to what `scripts/helm` prints");
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(helm);
    for place in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(place, home.path());
    }
    command.env_remove("KUBECONFIG").args(arguments).output().unwrap()
}

fn render(arguments: &[&str]) -> Output {
    helm(
        &[
            &["template", "sparkgate", CHART, "--namespace", "sparkgate", "--kube-version", "1.36.0"],
            &["--set", "acceptAnonymous=true"][..],
            arguments,
        ]
        .concat(),
    )
}

/// Returns the objects of the release `sparkgate` in the namespace `sparkgate`, those of its hooks too.
pub(crate) fn template(arguments: &[&str]) -> Vec<Value> {
    let output = render(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let objects: Vec<Value> = serde_saphyr::from_multiple(std::str::from_utf8(&output.stdout).unwrap()).unwrap();
    objects.into_iter().filter(|object| !object.is_null()).collect()
}

/// Returns why Helm refuses these arguments.
pub(crate) fn refusal(arguments: &[&str]) -> String {
    let output = render(arguments);
    assert!(!output.status.success(), "{arguments:?} are accepted");
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the object of this name outside of the namespaces of drivers.
pub(crate) fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is = |object: &&Value| {
        let metadata = &object["metadata"];
        object["kind"] == kind && metadata["name"] == name && metadata["namespace"] == "sparkgate"
    };
    objects.iter().find(is).unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// Returns the file of settings that the objects contain.
pub(crate) fn settings_file(objects: &[Value]) -> &str {
    find(objects, "ConfigMap", "sparkgate-settings")["data"]["sparkgate.toml"].as_str().unwrap()
}

/// Returns the settings in that file.
pub(crate) fn settings(objects: &[Value]) -> BTreeMap<String, Value> {
    let lines = settings_file(objects).lines().map(|line| line.split_once(" = ").unwrap());
    lines.map(|(name, value)| (name.to_owned(), serde_json::from_str(value).expect(name))).collect()
}

/// Returns the variables of the first container of a Deployment or a Job that have values.
pub(crate) fn variables(workload: &Value) -> BTreeMap<&str, &str> {
    let variables = workload["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    variables
        .iter()
        .map(|variable| (variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap_or_default()))
        .collect()
}
