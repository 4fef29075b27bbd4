//! The watch of pods on a real kube-apiserver and on the sandbox's, through a proxy that breaks its connections.

mod connection;
mod faults;
mod list;
mod odd;
mod proxy;
mod resume;
mod watching;
mod world;

/// Each scenario becomes a test with each server.
macro_rules! stories {
    ($($module:ident: $($name:ident),+;)+) => {
        mod with_sandbox {
            $($(#[tokio::test] async fn $name() {
                crate::watch::$module::$name(&crate::watch::world::World::sandbox(stringify!($name)).await).await;
            })+)+
        }
        mod with_kube_apiserver {
            $($(#[tokio::test] async fn $name() {
                crate::watch::$module::$name(&crate::watch::world::World::kube_apiserver(stringify!($name)).await).await;
            })+)+
        }
    };
}

stories! {
    list: begins_with_all_pages, tells_drivers_from_executors, lists_anew;
    resume: deletions_without_a_watch_are_reported_first, a_compacted_position_leads_to_a_list, any_version_leads_to_a_list;
    faults: cut_connections_lose_nothing, silence_is_noticed, an_api_server_that_is_away_comes_back;
}
