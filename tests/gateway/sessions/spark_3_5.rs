//! Sessions of Spark 3.5, whose servers have no authentication.

use k8s_openapi::api::{core::v1::Pod, networking::v1::NetworkPolicy};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use sqlx::PgPool;

use super::{named, open, place::Place};

const JAR: &str = "local:///opt/spark-connect_2.12-3.5.9.jar";

fn of_3_5(name: &str) -> Value {
    let mut body = named(name);
    body["sparkVersion"] = json!("3.5");
    body
}

/// Returns the policy of `sparkgate admission` for the namespace `red`.
fn policy() -> NetworkPolicy {
    let spark =
        json!({"matchExpressions": [{"key": "spark-role", "operator": "In", "values": ["driver", "executor"]}]});
    let gateway = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateway"}}});
    let ports = json!([{"protocol": "TCP", "port": "spark-ui"}, {"protocol": "TCP", "port": "spark-connect"}]);
    let spec = json!({"podSelector": spark, "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": spark}]}, {"from": [gateway], "ports": ports}]});
    serde_json::from_value(json!({"metadata": {"name": "sparkgate-spark", "namespace": "red"}, "spec": spec})).unwrap()
}

#[sqlx::test]
async fn a_session_of_spark_3_5_needs_a_jar_of_the_operator_and_a_network_policy(pool: PgPool) {
    let mut place = Place::new(pool).await;
    let access = place.world.service.access.clone();
    let mut settings = access.settings();
    let lines = json!({"lines": [{"version": "3.5.9", "image": "spark:3.5.9"}]}).to_string();
    settings.spark = settings.spark.with_lines(Some(&lines)).unwrap();
    access.replace_settings(settings);
    let refused = open(&place, &place.key, &of_3_5("a")).await;
    assert!(refused.status == 400 && refused.body.contains("connect-spark-3-5-jar"), "{refused:?}");

    place.world.configure(|setup| setup.connect.jar_of_3_5 = Some(JAR.to_owned())).await;
    let refused = open(&place, &place.key, &of_3_5("a")).await;
    assert!(refused.status == 400 && refused.body.contains("no NetworkPolicy sparkgate-spark"), "{refused:?}");
    let policies = Api::<NetworkPolicy>::namespaced(place.world.client.clone(), "red");
    policies.create(&PostParams::default(), &policy()).await.unwrap();
    let opened = open(&place, &place.key, &of_3_5("a")).await;
    assert_eq!((opened.status, &opened.json()["sparkVersion"]), (201, &json!("3.5.9")), "{}", opened.body);
    place.world.service.launcher.work().await.unwrap();
    let document = async |id: &Value| {
        place.world.get(&place.key, &format!("/v1/submissions/{}", id.as_str().unwrap())).await.json()
    };
    let launched = document(&opened.json()["id"]).await;
    let pods = Api::<Pod>::namespaced(place.world.client.clone(), "red");
    let pod = pods.get(launched["driver"]["pod"].as_str().unwrap()).await.unwrap();
    let driver = pod.spec.unwrap().containers.pop().unwrap();
    let arguments = driver.args.unwrap();
    let at = arguments.iter().position(|argument| argument == "--jars").unwrap();
    assert_eq!(arguments[at + 1..at + 3], [JAR, "--class"]);
    let ports: Vec<String> = driver.ports.unwrap().into_iter().filter_map(|port| port.name).collect();
    assert!(ports.contains(&"spark-connect".to_owned()), "the policy names it: {ports:?}");

    // The policy is gone when the driver of the next one is to be launched.
    let next = open(&place, &place.key, &of_3_5("b")).await;
    assert_eq!(next.status, 201, "{}", next.body);
    policies.delete("sparkgate-spark", &DeleteParams::default()).await.unwrap();
    place.world.service.launcher.work().await.unwrap();
    let refused = document(&next.json()["id"]).await;
    assert_eq!(refused["state"], "ERROR", "{refused}");
    let session = place.world.get(&place.key, &format!("/v1/sessions/{}", next.json()["id"].as_str().unwrap())).await;
    let message = session.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("SessionUnprotected") && message.contains("sparkgate admission"), "{message}");
}
