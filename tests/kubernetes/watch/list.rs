//! Full lists.

use sparkgate::cluster::{WatchPace, WatchReport};

use crate::watch::watching::{exit_code, names};
use crate::watch::world::{World, brisk};

pub(crate) async fn begins_with_all_pages(world: &World) {
    for number in 1..=4 {
        world.driver(number).await;
    }
    world.executor(1, "1").await;
    let paged = world.cluster().await.with_pace(WatchPace { page: 2, ..brisk() });
    let mut watch = world.watch_on(paged, None);
    let (items, listed) = watch.listed().await;
    assert_eq!(listed, names(["driver-1", "driver-2", "driver-3", "driver-4", "driver-1/1"]));
    assert_eq!(items.len(), 5, "{items:?}");
    world.driver(5).await;
    let seen = watch.driver(|_| true).await;
    assert_eq!((seen.submission.as_str(), seen.gone), ("driver-5", false));
}

pub(crate) async fn tells_drivers_from_executors(world: &World) {
    let mut watch = world.watch(None).await;
    assert_eq!(watch.listed().await, (Vec::new(), names([])));
    world.executor(1, "EXECID").await;
    world.executor(1, "7").await;
    let uid = world.driver(1).await;
    let executor = watch.executor(|_| true).await;
    assert_eq!((executor.executor_id, executor.attempt, executor.pod_name.as_str()), (7, 1, "exec-1-7"));
    assert!(executor.created_at.is_some());
    assert_eq!(watch.driver(|_| true).await.pod_uid, uid);

    world.end("exec-1-7", 137).await;
    let ended = watch.executor(|seen| exit_code(&seen.container).is_some()).await;
    assert_eq!((exit_code(&ended.container), ended.gone), (Some(137), false));
    world.remove("exec-1-7").await;
    let gone = watch.executor(|seen| seen.gone).await;
    assert_eq!((exit_code(&gone.container), gone.executor_id), (Some(137), 7));
}

/// All pods are listed periodically besides the watch; changes that happen meanwhile are reported before the list.
pub(crate) async fn lists_anew(world: &World) {
    world.driver(1).await;
    let often = WatchPace { relist: std::time::Duration::ZERO, ..brisk() };
    let mut watch = world.watch_on(world.cluster().await.with_pace(often), None);
    assert_eq!(watch.listed().await.1, names(["driver-1"]));
    world.end("driver-1", 0).await;
    world.remove("driver-1").await;
    let mut shown_gone = false;
    loop {
        let (items, listed) = watch.listed().await;
        shown_gone |= items.iter().any(|seen| matches!(seen, WatchReport::Driver(driver) if driver.gone));
        if listed.is_empty() {
            break;
        }
    }
    assert!(shown_gone, "the list without the pod came before its deletion");
}
