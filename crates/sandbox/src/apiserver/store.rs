//! All objects, under one lock, with a version that counts the writes, like etcd's revision.

mod history;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::failure::{Answer, Failure};
use super::object::{Key, Object, metadata, text};
use super::resource::Resource;
pub(super) use history::Change;
use history::History;

/// The maximum size of an object: etcd's limit for one request.
const OBJECT_BYTES: usize = 1536 << 10;
/// The maximum size of all objects together: etcd's quota.
const TOTAL_BYTES: usize = 512 << 20;

/// The lock, and the notification of watches about each write.
#[derive(Debug)]
pub(super) struct Store {
    state: Mutex<State>,
    news: watch::Sender<u64>,
}

impl Store {
    /// Creates an empty store. Versions start at the clock's milliseconds, so that a version from an earlier process is older
    /// than all versions of this one, and a watch that resumes from it has to list again.
    pub(super) fn new() -> Self {
        let version = u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or(1);
        Self { state: Mutex::new(State::new(version)), news: watch::Sender::new(version) }
    }

    /// Runs `read` on a consistent state.
    pub(super) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs `write`, which either succeeds as a whole or fails and stores nothing, and notifies the watches.
    pub(super) fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = write(&mut state);
        let version = state.version;
        self.news.send_if_modified(|news| std::mem::replace(news, version) != version);
        result
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }
}

/// The state that the lock protects.
#[derive(Debug)]
pub(super) struct State {
    version: u64,
    bytes: usize,
    objects: BTreeMap<Key, Arc<Object>>,
    /// uid → the key of its object.
    uids: HashMap<String, Key>,
    /// uid of an owner → the objects that name it in their owner references.
    dependants: HashMap<String, BTreeSet<Key>>,
    history: History,
    /// Work for the garbage collector: uids of removed objects, and new objects with owners.
    pub(super) vanished: Vec<(Key, String)>,
    pub(super) owned: Vec<Key>,
}

impl State {
    fn new(version: u64) -> Self {
        Self {
            version,
            bytes: 0,
            objects: BTreeMap::new(),
            uids: HashMap::new(),
            dependants: HashMap::new(),
            history: History::new(version),
            vanished: Vec::new(),
            owned: Vec::new(),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    pub(super) fn has_uid(&self, uid: &str) -> bool {
        self.uids.contains_key(uid)
    }

    pub(super) fn dependants_of(&self, uid: &str) -> Vec<Key> {
        self.dependants.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Returns the objects of one resource, in one namespace or in all, in the order of their keys.
    pub(super) fn all(&self, resource: &Resource, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Object>> {
        let plural = resource.plural;
        let first = Key::new(resource, namespace.unwrap_or_default(), "");
        self.objects
            .range(first..)
            .take_while(move |(key, _)| key.plural == plural && namespace.is_none_or(|wanted| key.namespace == wanted))
            .map(|(_, object)| object)
    }

    /// Returns the keys of all objects in a namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Key> {
        self.objects.keys().filter(|key| key.namespace == namespace).cloned().collect()
    }

    /// Stores a new version of an object.
    ///
    /// # Errors
    /// The object, or all objects together, would be too large.
    pub(super) fn put(&mut self, resource: &'static Resource, mut value: Value) -> Answer<Arc<Object>> {
        metadata(&mut value).insert("resourceVersion".into(), (self.version + 1).to_string().into());
        let object = Object::new(resource, value);
        if object.json.len() > OBJECT_BYTES {
            return Err(Failure::too_large("etcdserver: request is too large"));
        }
        let replaced = self.objects.get(&object.key()).map_or(0, |before| before.json.len());
        if object.json.len() > replaced && self.bytes - replaced + object.json.len() > TOTAL_BYTES {
            return Err(Failure::internal("etcdserver: mvcc: database space exceeded"));
        }
        self.version += 1;
        let before = self.objects.insert(object.key(), Arc::clone(&object));
        if let Some(before) = &before {
            self.unlink(before);
        }
        self.link(&object);
        self.record(before, Arc::clone(&object), false);
        Ok(object)
    }

    /// Removes an object; `last` is its last state.
    pub(super) fn remove(&mut self, resource: &'static Resource, mut last: Value) -> Arc<Object> {
        self.version += 1;
        metadata(&mut last).insert("resourceVersion".into(), self.version.to_string().into());
        let object = Object::new(resource, last);
        let key = object.key();
        let before = self.objects.remove(&key);
        if let Some(before) = &before {
            self.unlink(before);
            self.vanished.push((key, before.uid().to_owned()));
        }
        self.record(before, Arc::clone(&object), true);
        object
    }

    fn record(&mut self, before: Option<Arc<Object>>, after: Arc<Object>, removed: bool) {
        self.history.push(Change { version: self.version, before, after, removed });
    }

    fn link(&mut self, object: &Object) {
        let key = object.key();
        self.bytes += object.json.len();
        for owner in object.owners() {
            self.dependants.entry(text(owner, "/uid").to_owned()).or_default().insert(key.clone());
        }
        if !object.owners().is_empty() {
            self.owned.push(key.clone());
        }
        self.uids.insert(object.uid().to_owned(), key);
    }

    fn unlink(&mut self, object: &Object) {
        let key = object.key();
        self.bytes -= object.json.len();
        self.uids.remove(object.uid());
        for uid in object.owners().iter().map(|owner| text(owner, "/uid")) {
            if let Some(keys) = self.dependants.get_mut(uid) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.dependants.remove(uid);
                }
            }
        }
    }

    /// Returns the changes after a version, or `None` if some of them have been dropped.
    pub(super) fn since(&self, version: u64) -> Option<impl DoubleEndedIterator<Item = &Change>> {
        self.history.since(version)
    }

    /// Returns the objects of one resource as they were at a version, or `None` if that history has been dropped.
    pub(super) fn at(&self, version: u64, resource: &Resource) -> Option<BTreeMap<Key, Arc<Object>>> {
        let later = self.since(version)?;
        let mut then: BTreeMap<_, _> =
            self.all(resource, None).map(|object| (object.key(), Arc::clone(object))).collect();
        for change in later.rev().filter(|change| change.after.resource.plural == resource.plural) {
            match &change.before {
                Some(before) => then.insert(change.after.key(), Arc::clone(before)),
                None => then.remove(&change.after.key()),
            };
        }
        Some(then)
    }

    /// Drops the history, as etcd does when it is compacted.
    pub(super) fn compact(&mut self) {
        self.history.forget_all();
    }
}

#[cfg(test)]
mod tests;
