use serde_json::json;

use super::super::resource::find;
use super::*;

fn map(name: &str, owner: Option<&str>) -> Value {
    let owners: Vec<Value> = owner.iter().map(|uid| json!({ "uid": uid })).collect();
    json!({ "metadata": { "name": name, "namespace": "n", "uid": format!("uid-{name}"), "ownerReferences": owners } })
}

fn names(state: &State, version: u64, resource: &'static Resource) -> Option<Vec<String>> {
    Some(state.at(version, resource)?.into_keys().map(|key| key.name).collect())
}

#[test]
fn earlier_versions_can_be_read_until_they_are_compacted() {
    let maps = find("", "configmaps").unwrap();
    let mut state = State::new(100);
    state.put(maps, map("a", None)).unwrap();
    state.put(maps, map("b", None)).unwrap();
    state.remove(maps, map("a", None));
    assert_eq!(state.version(), 103);
    assert_eq!(names(&state, 100, maps).unwrap(), Vec::<String>::new());
    assert_eq!(names(&state, 102, maps).unwrap(), ["a", "b"]);
    assert_eq!(names(&state, 103, maps).unwrap(), ["b"]);
    assert_eq!(state.since(101).unwrap().map(|change| change.removed).collect::<Vec<_>>(), [false, true]);
    state.compact();
    assert_eq!(names(&state, 102, maps), None);
    assert_eq!(names(&state, 103, maps).unwrap(), ["b"]);
}

#[test]
fn the_history_is_limited() {
    let maps = find("", "configmaps").unwrap();
    let mut state = State::new(0);
    for _ in 0..10_005 {
        state.put(maps, map("a", None)).unwrap();
    }
    assert!(state.since(4).is_none());
    assert_eq!(state.since(5).unwrap().count(), 10_000);
}

#[test]
fn sizes_are_limited_and_counted() {
    let maps = find("", "configmaps").unwrap();
    let mut state = State::new(0);
    let mut large = map("a", None);
    large["data"] = json!({ "a": "x".repeat(OBJECT_BYTES) });
    assert!(state.put(maps, large).is_err());
    assert_eq!((state.version(), state.bytes), (0, 0));
    state.put(maps, map("a", None)).unwrap();
    state.remove(maps, map("a", None));
    assert_eq!(state.bytes, 0);
}

#[test]
fn dependants_are_found_by_their_owner() {
    let maps = find("", "configmaps").unwrap();
    let mut state = State::new(0);
    state.put(maps, map("a", Some("owner"))).unwrap();
    assert_eq!(state.dependants_of("owner").len(), 1);
    state.put(maps, map("a", None)).unwrap();
    assert!(state.dependants_of("owner").is_empty() && state.has_uid("uid-a"));
}
