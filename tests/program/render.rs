//! `sparkgate render` as a filter.

use std::{
    io::Write,
    process::{Output, Stdio},
};

use serde_json::{Value, json};
use sparkgate_testing::gateway::sparkgate;

fn render(version: &str, request: &Value) -> Output {
    render_with(&["--spark-version", version], request)
}

fn render_with(arguments: &[&str], request: &Value) -> Output {
    let mut command = sparkgate();
    command.arg("render").args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn request() -> Value {
    json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "mainClass": "a.B",
        "appResource": "local:///opt/app.jar", "sparkProperties": {"spark.kubernetes.container.image": "spark"}})
}

#[test]
fn render_prints_a_list_in_creation_order() {
    for (version, kinds) in [
        ("3.5.9", vec!["Pod", "Service", "ConfigMap"]),
        ("4.1.4", vec!["Pod", "Service", "ConfigMap"]),
        ("4.3.0", vec!["Pod", "Service", "NetworkPolicy", "ConfigMap"]),
    ] {
        let output = render(version, &request());
        assert!(output.status.success());
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(list["kind"], "List");
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.iter().map(|item| item["kind"].as_str().unwrap()).collect::<Vec<_>>(), kinds, "{version}");
        assert_eq!(items[0]["metadata"]["labels"]["spark-version"], version);
    }
}

#[test]
fn render_uses_the_image_and_the_defaults_of_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lines.yaml");
    std::fs::write(&file, "lines: [{version: 3.5.9, image: old, defaults: {spark.driver.memory: 3g}}]\n").unwrap();
    let file = ["--spark-lines-file", file.to_str().unwrap()];
    let bare = json!({"mainClass": "a.B", "appResource": "local:///opt/app.jar", "sparkProperties": {}});
    let mut selects = bare.clone();
    selects["sparkProperties"]["spark.sparkgate.sparkVersion"] = json!("3.5");
    for (arguments, request) in [(&["--spark-version", "3.5.9"][..], &bare), (&[], &selects)] {
        let output = render_with(&[&file, arguments].concat(), request);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        let pod = &list["items"][0];
        assert_eq!(pod["metadata"]["labels"]["spark-version"], "3.5.9");
        let container = &pod["spec"]["containers"][0];
        assert_eq!(
            (&container["image"], &container["resources"]["requests"]["memory"]),
            (&json!("old"), &json!("3456Mi"))
        );
    }
    let wrong = dir.path().join("wrong.yaml");
    std::fs::write(&wrong, "lines:\n  - version: 3.5\n    img: x\n").unwrap();
    let output = render_with(&["--spark-lines-file", wrong.to_str().unwrap()], &bare);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains("wrong.yaml (--spark-lines-file)") && said.contains("line 3"),
        "{said}"
    );
}

#[test]
fn render_names_the_refused_property_on_standard_error() {
    let mut refused = request();
    refused["sparkProperties"]["spark.driver.bindAddress"] = json!("10.0.0.1");
    let output = render("4.3.0", &refused);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("spark.driver.bindAddress is not supported in Kubernetes mode"), "{said}");
}

#[test]
fn render_warns_of_properties_that_may_be_misspelt() {
    let mut odd = request();
    odd["sparkproperties"] = json!({});
    odd["sparkProperties"]["driver.memory"] = json!("2g");
    odd["sparkProperties"]["spark.kubernetes.driver.podTemplatefile"] = json!("gpu.yaml");
    let output = render("4.3.0", &odd);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let odd = ["sparkproperties", "driver.memory", "spark.kubernetes.driver.podTemplatefile"];
    assert_eq!(said.lines().count(), odd.len(), "{said}");
    assert!(said.lines().zip(odd).all(|(note, odd)| note.contains(odd)), "{said}");
}

#[test]
fn render_uses_the_submitter_directory() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("defaults")).unwrap();
    std::fs::write(dir.path().join("defaults/small.conf"), "spark.driver.memory 512m\nspark.driver.cores 3\n").unwrap();
    let mut request = request();
    request["sparkProperties"]["spark.sparkgate.defaults"] = json!("small");
    request["sparkProperties"]["spark.driver.cores"] = json!(2);
    let path = dir.path().to_str().unwrap();
    let output = render_with(&["--submitter-dir", path], &request);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        list["items"][0]["spec"]["containers"][0]["resources"]["requests"],
        json!({"cpu": "2", "memory": "896Mi"})
    );

    let defaults = tempfile::NamedTempFile::with_suffix(".conf").unwrap();
    std::fs::write(&defaults, "spark.sparkgate.defaults large\n").unwrap();
    let output = render_with(&["--spark-defaults", defaults.path().to_str().unwrap()], &request);
    assert_eq!(output.status.code(), Some(1), "the operator's own mistake shows at start, whatever is requested");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(".conf (--spark-defaults) can't be used: `large`"), "{said}");

    std::fs::write(dir.path().join("typo"), "").unwrap();
    let output = render_with(&["--submitter-dir", path], &request);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("typo (--submitter-dir) is none of"));
}
