//! Conversations with the Kubernetes API, run with the sandbox's API server and with a real kube-apiserver: both must
//! give the same answers.

mod collect;
mod create;
mod delete;
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
                crate::api::$module::$name(&crate::api::world::World::sandbox(stringify!($name)).await).await;
            })+)+
        }
        mod with_kube_apiserver {
            $($(#[tokio::test] async fn $name() {
                crate::api::$module::$name(&crate::api::world::World::kube_apiserver(stringify!($name)).await).await;
            })+)+
        }
    };
}

conversations! {
    create: fills_in_server_fields, refuses_invalid_objects, refuses_broken_pods, generates_names, unknown_paths;
    list: selects, pages_show_one_moment, versions;
    watch: reports_changes_in_order, follows_the_selector, begins_with_existing_objects, bookmarks, expires;
    update: put, patches, applies, separates_status, immutable_data;
    pods: binds_once, waits_for_the_kubelet, goes_at_once_without_a_node, logs_of_a_pod_without_a_node;
    delete: finalizers_hold, preconditions, collections;
    collect: collects_objects_without_an_owner, ends_namespaces;
}
