//! etcd is restored from a backup while a gateway watches: the resource versions go backwards. Or the database is restored: the
//! cluster is ahead of it.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use sparkgate::cluster::{Cluster, WatchItem, WatchReport};
use tokio::time::timeout;

use crate::{
    harness::{
        restore::{Backup, Drivers, play},
        servers::borrow,
    },
    panic_if_any,
};

const PATIENCE: Duration = Duration::from_secs(60);

async fn create(client: &Client, namespace: &str, number: u32) {
    let labels = json!({"spark-role": "driver", "sparkgate.dev/submission-id": format!("driver-{number}"),
        "sparkgate.dev/attempt": "1"});
    let pod = json!({"metadata": {"name": format!("driver-{number}"), "labels": labels},
        "spec": {"containers": [{"name": "spark", "image": "spark"}]}});
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
}

async fn shown(watch: &mut (impl StreamExt<Item = WatchItem> + Unpin), number: u32) {
    let id = format!("driver-{number}");
    let seen = async {
        loop {
            if let Some(WatchReport::Driver(seen)) = watch.next().await.unwrap().report
                && seen.submission.as_str() == id
            {
                return;
            }
        }
    };
    timeout(PATIENCE, seen).await.unwrap_or_else(|_| panic!("{id} isn't shown"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_notices_that_the_cluster_was_restored() {
    let mut servers = borrow().await;
    let kubernetes = &mut servers.both().kubernetes;
    let namespace = format!("restored-{}", uuid::Uuid::new_v4().simple());
    let client = kubernetes.client().await;
    let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
    let cluster = Cluster::new(client.clone(), std::slice::from_ref(&namespace));
    let mut watch = cluster.watch(Some(namespace.clone()), None);
    create(&client, &namespace, 1).await;
    shown(&mut watch, 1).await;

    kubernetes.back_up().await;
    for number in 2..12 {
        create(&client, &namespace, number).await;
        shown(&mut watch, number).await;
    }
    kubernetes.restore().await;
    create(&client, &namespace, 12).await;
    shown(&mut watch, 12).await;
}

async fn drill(seed: u64, backup: Backup, drivers: Drivers) {
    let verdict = play(env!("CARGO_BIN_EXE_sparkgate").into(), seed, backup, drivers).await;
    eprintln!("{backup:?}, drivers {drivers:?}: {} rows, {:?}", verdict.rows, verdict.states);
    panic_if_any("the database was restored", &verdict.violations);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_dump_is_restored_drivers_that_run_are_adopted() {
    drill(21, Backup::Dump, Drivers::Run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_dump_is_restored_drivers_that_ended_are_not_started_again() {
    drill(22, Backup::Dump, Drivers::HaveEnded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_base_backup_is_restored_drivers_that_run_are_adopted() {
    drill(23, Backup::Base, Drivers::Run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_base_backup_is_restored_drivers_that_ended_are_not_started_again() {
    drill(24, Backup::Base, Drivers::HaveEnded).await;
}
