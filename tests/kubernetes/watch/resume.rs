//! Resuming from a stored resource version.

use sparkgate::cluster::WatchReport;

use crate::watch::watching::{exit_code, names};
use crate::watch::world::World;

/// Creates running drivers and a watch that sees them and ends; returns the watch's version.
async fn look_away(world: &World) -> String {
    world.driver(1).await;
    world.driver(2).await;
    let mut watch = world.watch(None).await;
    assert_eq!(watch.listed().await.1, names(["driver-1", "driver-2"]));
    watch.version.unwrap()
}

pub(crate) async fn deletions_without_a_watch_are_reported_first(world: &World) {
    let version = look_away(world).await;
    world.end("driver-1", 3).await;
    world.remove("driver-1").await;

    let mut watch = world.watch(Some(&version)).await;
    let (items, listed) = watch.listed().await;
    assert_eq!(listed, names(["driver-2"]));
    let ends: Vec<_> = items
        .iter()
        .filter_map(|seen| match seen {
            WatchReport::Driver(driver) if driver.gone => {
                Some((driver.submission.as_str(), exit_code(&driver.container)))
            }
            _ => None,
        })
        .collect();
    assert_eq!(ends, [("driver-1", Some(3))], "{items:?}");

    // The watch resumes from there once more: nothing is reported twice, and new changes arrive.
    let version = watch.version.unwrap();
    let mut watch = world.watch(Some(&version)).await;
    let (items, _) = watch.listed().await;
    assert!(
        matches!(&items[..], [WatchReport::Driver(driver)] if driver.submission.as_str() == "driver-2"),
        "{items:?}"
    );
    world.remove("driver-2").await;
    watch.driver(|seen| seen.gone).await;
}

pub(crate) async fn a_compacted_position_leads_to_a_list(world: &World) {
    let version = look_away(world).await;
    world.remove("driver-1").await;
    // A compaction covers the changes before the one that follows here.
    world.driver(3).await;
    world.compact().await;

    let mut watch = world.watch(Some(&version)).await;
    let (items, listed) = watch.listed().await;
    assert_eq!(listed, names(["driver-2", "driver-3"]));
    assert!(!items.iter().any(|seen| matches!(seen, WatchReport::Broken { .. })), "not an outage: {items:?}");
    world.remove("driver-2").await;
    watch.driver(|seen| seen.gone).await;
}

/// Invalid, too old, or in the future: the watch receives changes afterwards, too.
pub(crate) async fn any_version_leads_to_a_list(world: &World) {
    world.driver(1).await;
    let versions = ["", "nonsense", "1", "-1", "0", "18446744073709551615", "99999999999999999999999999"];
    for (code, version) in (1..).zip(versions) {
        let mut watch = world.watch(Some(version)).await;
        assert_eq!(watch.listed().await.1, names(["driver-1"]), "{version}");
        world.end("driver-1", code).await;
        watch.driver(|seen| exit_code(&seen.container) == Some(code)).await;
    }
}
