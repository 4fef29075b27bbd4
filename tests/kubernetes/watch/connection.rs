//! How the gateway's own client uses connections to a real kube-apiserver, which supports HTTP/2.

use std::time::Duration;

use crate::watch::watching::Watching;
use crate::watch::world::World;
use futures::future::join_all;
use sparkgate::cluster::{WatchPace, WatchReport};
use sparkgate_testing::fault_proxy::{Fault, Way};
use tokio::time::{Instant, sleep};

#[tokio::test]
async fn many_calls_share_one_connection() {
    let world = World::kube_apiserver("many-calls").await;
    world.driver(1).await;
    let cluster = world.cluster().await;
    let id = "driver-1".parse().unwrap();
    let calls = (0..50).map(|_| cluster.find_driver(&world.namespace, "driver-1", &id, 1));
    for found in join_all(calls).await {
        found.unwrap();
    }
    assert_eq!(world.proxy.connections(), 1, "HTTP/1.1 would need one for each call in flight");
    let mut watch = world.watch_on(cluster, None);
    watch.listed().await;
    assert_eq!(world.proxy.connections(), 2, "watches have one of their own");
}

/// A dead connection is detected by its silence alone, long before the watch would have ended.
#[tokio::test]
async fn a_ping_without_an_answer_ends_the_connection() {
    let world = World::kube_apiserver("ping").await;
    let cluster = world.cluster().await.with_pace(WatchPace { renewal: 3600, ..WatchPace::default() });
    let mut watch = world.watch_on(cluster, None);
    watch.listed().await;
    world.proxy.set(Fault::Silent(Way::ToClient));
    world.driver(1).await;
    let broken = |seen| matches!(seen, WatchReport::Broken { .. }).then_some(());
    // Without pings the connection would be closed after a minute of silence.
    watch.within(Duration::from_secs(45), broken).await.expect("the silence isn't detected");
    world.proxy.set(Fault::None);
    assert_eq!(watch.driver(|_| true).await.submission.as_str(), "driver-1");
}

/// An API server processes a hundred concurrent requests per connection, and a watch is a request that doesn't end.
#[tokio::test]
async fn there_may_be_more_watches_than_fit_on_a_connection() {
    let world = World::everywhere("many-watches").await;
    let mut namespaces: Vec<_> = (1..120).map(|number| format!("many-watches-{number}")).collect();
    namespaces.push(world.namespace.clone());
    let cluster = world.cluster_of(&namespaces).await;
    let mut watches: Vec<_> =
        namespaces.iter().map(|name| Watching::new(cluster.watch(Some(name.clone()), None))).collect();
    for watch in &mut watches {
        watch.listed().await;
    }
    // One for calls, one for each fifty watches. Watches that started concurrently opened more connections, and closed
    // them.
    let deadline = Instant::now() + Duration::from_secs(30);
    while world.proxy.live() != 4 {
        assert!(Instant::now() < deadline, "{} connections", world.proxy.live());
        sleep(Duration::from_millis(20)).await;
    }
    world.driver(1).await;
    watches[119].driver(|_| true).await;
}
