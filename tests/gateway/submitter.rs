//! The operator's submitter directory, from the request to the pod.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use sparkgate::service::Submitter;
use sqlx::PgPool;

use crate::world::World;

fn submitter(files: &[(&str, &str)]) -> Submitter {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Submitter::read(dir.path()).unwrap()
}

#[sqlx::test]
async fn named_defaults_and_a_command_line_arrive_in_the_pod(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let defaults = "spark.kubernetes.driver.label.team data\nspark.driver.cores 3\nspark.executor.memory 3g\n";
    let files = [("defaults/data.conf", defaults), ("files/a.txt", "a"), ("files/b.txt", "b")];
    let world = World::submitting(pool, world.client.clone(), world.namespace.clone(), submitter(&files)).await;
    let mut request = world.request(&[("spark.sparkgate.defaults", "data"), ("spark.file", "a.txt")]);
    request.main_class = "org.apache.spark.deploy.SparkSubmit".to_owned();
    request.app_resource = String::new();
    request.app_args =
        ["--name", "From a line", "--driver-cores", "2", "local:///opt/pi.py", "10"].map(str::to_owned).to_vec();
    world.service.submissions.create(&world.service.anonymous(), request).await.unwrap();
    // The selection is fixed in the row: a gateway with another directory creates the same driver.
    World::on(world.pool.clone(), world.client.clone(), world.namespace.clone())
        .await
        .service
        .launcher
        .work()
        .await
        .unwrap();

    let pod = world.driver().await;
    let labels = pod.metadata.labels.unwrap();
    assert_eq!((labels["team"].as_str(), labels["spark-app-name"].as_str()), ("data", "from-a-line"));
    let container = &pod.spec.unwrap().containers[0];
    assert_eq!(container.args.as_ref().unwrap()[5..], ["local:///opt/pi.py", "10"]);
    assert_eq!(container.resources.as_ref().unwrap().requests.as_ref().unwrap()["cpu"].0, "2");

    let maps = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
    let properties = maps.iter().find_map(|map| map.data.as_ref()?.get("spark.properties")).unwrap();
    assert!(properties.contains("\nspark.executor.memory=3g\n") && !properties.contains("sparkgate.defaults"));
}

#[sqlx::test]
async fn a_named_template_and_configuration_arrive_in_the_pod(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let template = "spec:\n  containers:\n  - {name: a, workingDir: /work}\n";
    let defaults = "spark.kubernetes.driver.podTemplateFile driver.yaml\n";
    let files = [
        ("defaults/data.conf", defaults),
        ("files/driver.yaml", template),
        ("spark-conf/log4j2.properties", "rootLogger.level=warn"),
        ("hadoop-conf/core-site.xml", "<configuration/>"),
    ];
    let world = World::submitting(pool, world.client.clone(), world.namespace.clone(), submitter(&files)).await;
    world.submit(&[("spark.sparkgate.defaults", "data")]).await;
    world.service.launcher.work().await.unwrap();

    let container = &world.driver().await.spec.unwrap().containers[0];
    assert_eq!((container.name.as_str(), container.working_dir.as_deref()), ("a", Some("/work")));
    let maps = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
    let text = |key: &str| maps.iter().find_map(|map| map.data.as_ref()?.get(key)).cloned();
    assert_eq!(text("log4j2.properties").as_deref(), Some("rootLogger.level=warn"));
    assert_eq!(text("core-site.xml").as_deref(), Some("<configuration/>"));
}

#[sqlx::test]
async fn unknown_defaults_are_refused(pool: PgPool) {
    let world = World::new(pool).await;
    let refusal = world.refusal(&[("spark.sparkgate.defaults", "gpu")]).await;
    assert!(refusal.contains("spark.sparkgate.defaults") && refusal.contains("`gpu`"), "{refusal}");
}
