//! Connections that break, and servers that are down.
use crate::watch::watching::names;
use crate::watch::world::{World, submission};
use sparkgate_testing::fault_proxy::{Fault, Way};

pub(crate) async fn cut_connections_lose_nothing(world: &World) {
    let mut watch = world.watch(None).await;
    watch.listed().await;
    for number in 1..=20 {
        if number % 3 == 0 {
            world.proxy.cut();
        }
        world.driver(number).await;
        world.remove(&submission(number)).await;
    }
    // In order: a pod is reported before its deletion, and none after a later one.
    for number in 1..=20 {
        let id = submission(number);
        watch.driver(|seen| seen.submission.as_str() == id && !seen.gone).await;
        watch.driver(|seen| seen.submission.as_str() == id && seen.gone).await;
    }
}

/// Over HTTP/1.1 the watch's own timeout detects it.
pub(crate) async fn silence_is_noticed(world: &World) {
    let cluster = world.cluster_http1().await.with_pace(crate::watch::world::brisk());
    let mut watch = world.watch_on(cluster, None);
    watch.listed().await;
    world.proxy.set(Fault::Silent(Way::Both));
    world.driver(1).await;
    let reason = watch.broken().await;
    assert!(reason.contains("pods"), "{reason}");
    world.proxy.set(Fault::None);
    assert_eq!(watch.driver(|_| true).await.submission.as_str(), "driver-1");
}

pub(crate) async fn an_api_server_that_is_away_comes_back(world: &World) {
    let mut watch = world.watch(None).await;
    watch.listed().await;
    world.proxy.set(Fault::Refuse);
    world.proxy.cut();
    watch.broken().await;
    watch.broken().await;
    world.driver(1).await;
    world.end("driver-1", 4).await;
    world.remove("driver-1").await;
    world.proxy.set(Fault::None);
    watch.driver(|seen| seen.gone).await;

    // Down from the start.
    let cluster = world.cluster().await.with_pace(crate::watch::world::brisk());
    world.proxy.set(Fault::Refuse);
    world.proxy.cut();
    let mut watch = world.watch_on(cluster, None);
    watch.broken().await;
    world.driver(2).await;
    world.proxy.set(Fault::None);
    assert_eq!(watch.listed().await.1, names(["driver-2"]));
}
