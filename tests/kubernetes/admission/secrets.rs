//! Secrets as plain text in a pod, of a tenant whose policy forbids them.

use serde_json::{Value, json};

use crate::admission::{
    judge, pod, with,
    world::{Change, world},
};

#[tokio::test]
async fn secrets_are_refused_wherever_a_pod_has_them() {
    let world = world().await;
    let create = |pointer: &str, value: Value| {
        let pod = with(pod("p", "driver", "any", "any"), pointer, value);
        Change::post("/api/v1/namespaces/reports/pods".to_owned(), pod)
    };
    let env = |name: &str, value: &str| create("/spec/containers/0/env", json!([{ "name": name, "value": value }]));
    let argument = |text: &str| create("/spec/containers/0/args", json!(["--x", text]));
    let annotation = |key: &str| create("/metadata/annotations", json!({ key: "CANARY" }));
    let secret = Some("looks like a secret");
    judge(
        world,
        &world.gateway().await,
        vec![
            ("Spark's rule", env("DB_PASSWORD", "CANARY"), secret),
            ("a key", env("API_KEY", "CANARY"), secret),
            ("a password", env("DB_PASS", "CANARY"), secret),
            ("credentials", env("GCP_CREDENTIALS", "CANARY"), secret),
            ("a base64", env("AZURE_STORAGE_KEY", "/abc+def=="), secret),
            ("a URL", env("X", "jdbc:postgresql://scott:CANARY@db/x"), secret),
            ("an argument", argument("--db-pass=CANARY"), secret),
            ("a URL as an argument", argument("https://scott:CANARY@example.org/?a=b"), secret),
            ("an annotation", annotation("example.org/apikey"), secret),
            ("an empty value", env("API_KEY", ""), None),
            ("a file", env("GOOGLE_APPLICATION_CREDENTIALS", "/etc/key.json"), None),
            ("a flag", env("PASS_THROUGH", "true"), None),
            ("a class", env("X", "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"), None),
            ("a plain argument", argument("--date=2026-01-01"), None),
            ("a plain annotation", annotation("example.org/team"), None),
        ],
    )
    .await;
}
