use serde_json::json;

use super::*;

#[test]
fn secrets_are_hidden_by_their_names_and_values() {
    assert_eq!(property("spark.hadoop.fs.s3a.access.key", "AKIA".to_owned()), REDACTED);
    assert_eq!(property("spark.driver.extraJavaOptions", "-Dpassword=x".to_owned()), REDACTED);
    assert_eq!(property("spark.app.name", "nightly".to_owned()), "nightly");
    let mut all = [
        json!({"kind": "Secret", "data": {"a": "c2VjcmV0"}, "stringData": {"b": "x"}}),
        json!({"kind": "ConfigMap", "data": {
            "spark.properties": "#Java properties, token\nspark.app.name=a\nspark.ssl.keyPassword=hunter2\n",
            "core-site.xml": "<name>fs.s3a.secret.key</name>",
            "log4j2.properties": "rootLogger.level=info",
        }}),
        json!({"kind": "Pod",
            "metadata": {"annotations": {"vault-token": "hunter2", "team": "red"}, "labels": {"token": "a", "app": "token-service"}},
            "spec": {
                "containers": [{
                    "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "MODE", "value": "fast"}],
                    "args": ["driver", "--db-password=hunter2", "--date=today", "token"],
                    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "X-Token", "value": "hunter2"}]}},
                }],
                "initContainers": [{
                    "env": [{"name": "X", "value": "token=1"}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "my-secret"}}}],
                }],
                "volumes": [{"name": "secret-volume", "secret": {"secretName": "my-secret"}}],
            },
        }),
        json!({"kind": "Service", "spec": {"selector": {"api-token": "a", "app": "token-service"}}}),
    ];
    let before = all.clone();
    let hidden = objects(&mut all);
    assert!(hidden.len() == 11 && hidden.contains(&"hunter2".to_owned()), "{hidden:?}");
    assert_eq!(all[0], json!({"kind": "Secret", "data": {"a": REDACTED}, "stringData": {"b": REDACTED}}));
    let properties = format!("#Java properties, token\nspark.app.name=a\nspark.ssl.keyPassword={REDACTED}\n");
    assert_eq!(
        all[1]["data"],
        json!({"spark.properties": properties, "core-site.xml": REDACTED, "log4j2.properties": "rootLogger.level=info"})
    );
    let mut pod = before[2].clone();
    pod["metadata"]["annotations"]["vault-token"] = REDACTED.into();
    pod["metadata"]["labels"]["token"] = REDACTED.into();
    let driver = &mut pod["spec"]["containers"][0];
    driver["env"][0]["value"] = REDACTED.into();
    driver["args"][1] = format!("--db-password={REDACTED}").into();
    driver["livenessProbe"]["httpGet"]["httpHeaders"][0]["value"] = REDACTED.into();
    pod["spec"]["initContainers"][0]["env"][0]["value"] = REDACTED.into();
    assert_eq!(all[2], pod);
    assert_eq!(all[3]["spec"]["selector"], json!({"api-token": REDACTED, "app": "token-service"}));
    assert_eq!(objects(&mut all), Vec::<String>::new(), "nothing is left to hide");
}

#[test]
fn an_executor_template_is_shown_without_its_secrets() {
    let yaml = "spec:\n  containers:\n  - name: a\n    env:\n    - {name: TOKEN, value: hunter2}\n    - {name: MODE, value: fast}\n";
    let map = |text: &str| json!({"kind": "ConfigMap", "data": {"podspec-configmap-key": text}});
    let text = |map: &Value| map["data"]["podspec-configmap-key"].as_str().unwrap().to_owned();
    let mut all = [map(yaml), map("spec: {volumes: [{secret: {secretName: a}}]}"), map("secret: [")];
    assert_eq!(objects(&mut all), ["hunter2", "secret: ["]);
    assert!(text(&all[0]).contains("fast") && !text(&all[0]).contains("hunter2"), "{}", text(&all[0]));
    assert_eq!(text(&all[1]), "spec: {volumes: [{secret: {secretName: a}}]}");
    assert_eq!(text(&all[2]), REDACTED);
}

#[test]
fn a_manifest_without_secrets_is_stored_as_it_is() {
    let plain = r#"{"before":[],"pod":{"kind":"Pod","spec":{"volumes":[{"secret":{"secretName":"a"}}]}},"beside":[]}"#;
    assert_eq!(manifest(plain).unwrap(), None);
    let secret = r#"{"before":[],"pod":{"kind":"Pod","spec":{"containers":[{"env":[{"name":"TOKEN","value":"x"}]}]}},"beside":[]}"#;
    let redacted = manifest(secret).unwrap().unwrap();
    assert_eq!(redacted, secret.replace("\"x\"", &format!("\"{REDACTED}\"")));
    assert_eq!(manifest(&redacted).unwrap(), None);
}

#[test]
fn a_message_of_the_api_server_does_not_quote_secrets() {
    let pod = json!({"kind": "Pod", "metadata": {"labels": {"token": "hunter \"2"}}, "spec": {}});
    let manifest = Manifest { pod: serde_json::value::to_raw_value(&pod).unwrap(), ..Default::default() };
    let message =
        message_about(&manifest, "metadata.labels: Invalid value: \"hunter \\\"2\": a valid label".to_owned());
    assert_eq!(message, format!("metadata.labels: Invalid value: \"{REDACTED}\": a valid label"));
}

#[test]
fn a_refusal_does_not_quote_secrets() {
    let request = CreateSubmissionRequest {
        app_args: vec!["--db-password=Hunter2a".to_owned()],
        spark_properties: [("spark.driver.memory".to_owned(), " Token=1 ".to_owned())].into(),
        environment_variables: [("TOKENS".to_owned(), "3".to_owned())].into(),
        driver_pod_template: Some("password=hunter3".into()),
        ..Default::default()
    };
    let secrets = secrets_of(&request);
    let message = |text: &str| without(text.to_owned(), &secrets);
    assert_eq!(
        message("Failed to parse token=1 or Token=1, 3 times"),
        format!("Failed to parse {REDACTED} or {REDACTED}, 3 times")
    );
    assert_eq!(message("hunter2a"), REDACTED);
    assert_eq!(message("no file `password=hunter3`"), format!("no file `{REDACTED}`"));
    assert_eq!(message("hunter2"), "hunter2");
}
