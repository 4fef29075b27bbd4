//! Conversations with the Kubernetes API, held with the sandbox's API server and with a real kube-apiserver: what both
//! must answer alike.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod collect;
mod create;
mod delete;
#[expect(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../support/kube.rs"]
mod kube_apiserver;
mod list;
mod pods;
mod update;
mod watch;
mod world;

/// Each conversation becomes a test with each server.
macro_rules! conversations {
    ($($module:ident: $($name:ident),+;)+) => {
        mod with_sandbox {
            $($(#[tokio::test] async fn $name() {
                crate::$module::$name(&crate::world::World::sandbox(stringify!($name)).await).await;
            })+)+
        }
        mod with_kube_apiserver {
            $($(#[tokio::test] async fn $name() {
                crate::$module::$name(&crate::world::World::kube_apiserver(stringify!($name)).await).await;
            })+)+
        }
    };
}

conversations! {
    create: fills_what_the_server_knows, refuses_what_is_wrong, refuses_broken_pods, generates_names, unknown_paths;
    list: selects, pages_show_one_moment, versions;
    watch: tells_changes_in_order, follows_the_selector, begins_with_what_is, bookmarks, expires;
    update: put, patches, applies, keeps_status_apart, immutable_data;
    pods: binds_once, waits_for_the_kubelet, goes_at_once_without_a_node, logs_of_a_pod_without_a_node;
    delete: finalizers_hold, preconditions, collections;
    collect: takes_what_has_no_owner, ends_namespaces;
}
