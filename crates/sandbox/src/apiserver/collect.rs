//! The garbage collector and the deletion of namespaces, which kube-controller-manager does in a real cluster. Here they run at
//! once.

use std::collections::BTreeSet;

use super::object::{Key, Object, text};
use super::removal::{DeleteOptions, remove};
use super::resource::{self, NAMESPACES};
use super::store::State;

/// Deletes the objects that have lost their owners with the latest writes, and namespaces that have become empty.
pub(super) fn collect(state: &mut State) {
    loop {
        let mut orphans: BTreeSet<Key> = std::mem::take(&mut state.owned).into_iter().collect();
        let vanished = std::mem::take(&mut state.vanished);
        if orphans.is_empty() && vanished.is_empty() {
            return;
        }
        let mut namespaces = BTreeSet::new();
        for (key, uid) in vanished {
            orphans.extend(state.dependants_of(&uid));
            namespaces.insert(key.namespace);
        }
        for key in orphans {
            let orphan = state.get(&key).filter(|object| is_orphan(state, object)).map(|object| object.resource);
            if let Some(resource) = orphan {
                delete(state, resource, &key);
            }
        }
        for namespace in namespaces.into_iter().filter(|namespace| !namespace.is_empty()) {
            end_namespace(state, &namespace);
        }
    }
}

/// Deletes all objects in a namespace that is being deleted, and then the namespace itself.
pub(super) fn end_namespace(state: &mut State, namespace: &str) {
    let own = Key::new(&NAMESPACES, "", namespace);
    let ending = |object: &&std::sync::Arc<Object>| object.value.pointer("/metadata/deletionTimestamp").is_some();
    let Some(last) = state.get(&own).filter(ending).map(|object| object.value.clone()) else { return };
    for key in state.in_namespace(namespace) {
        if let Some(resource) = state.get(&key).map(|object| object.resource) {
            delete(state, resource, &key);
        }
    }
    if state.in_namespace(namespace).is_empty() {
        state.remove(&NAMESPACES, last);
    }
}

fn delete(state: &mut State, resource: &'static resource::Resource, key: &Key) {
    if remove(state, resource, key, &DeleteOptions::default()).is_err() {
        tracing::warn!(?key, "the sandbox could not delete an object that has no owner left");
    }
}

/// Returns whether all owners are gone. An owner of a kind that is not served may exist elsewhere, so its dependants are kept.
fn is_orphan(state: &State, object: &Object) -> bool {
    let owners = object.owners();
    !owners.is_empty()
        && owners.iter().all(|owner| {
            let served = resource::find_kind(text(owner, "/apiVersion"), text(owner, "/kind")).is_some();
            served && !state.has_uid(text(owner, "/uid"))
        })
}
