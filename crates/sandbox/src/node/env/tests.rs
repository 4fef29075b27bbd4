use serde_json::json;

use super::*;

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"spark-role": "driver"}},
        "spec": {"containers": [], "nodeName": "sandbox"},
        "status": {"podIP": "127.9.0.1", "hostIP": "127.0.0.1"},
    }))
    .unwrap()
}

#[test]
fn references_expand_to_variables_that_are_set_before() {
    let mut env = Env::default();
    env.set("A", "1");
    env.set("B", "$(A)");
    assert_eq!(env.expand("x$(A)y$(B)"), "x1y$(A)");
    assert_eq!(env.expand("$(NONE) $$(A) $A $( $"), "$(NONE) $(A) $A $( $");
}

#[test]
fn a_later_value_replaces_an_earlier_one() {
    let mut env = Env::default();
    env.set("SPARK_USER", "a");
    env.set("SPARK_USER", "b");
    env.set_default("SPARK_USER", "c");
    assert_eq!(env.iter().collect::<Vec<_>>(), [("SPARK_USER", "b")]);
}

#[test]
fn fields_of_the_pod_become_values() {
    for (path, expected) in [
        ("metadata.name", Some("p")),
        ("metadata.namespace", Some("n")),
        ("metadata.uid", Some("u")),
        ("spec.nodeName", Some("sandbox")),
        ("spec.serviceAccountName", Some("")),
        ("status.podIP", Some("127.9.0.1")),
        ("status.hostIP", Some("127.0.0.1")),
        ("metadata.labels['spark-role']", Some("driver")),
        ("metadata.annotations['none']", Some("")),
        ("status.phase", None),
    ] {
        assert_eq!(field(&pod(), path).as_deref(), expected, "{path}");
    }
}

#[test]
fn a_missing_key_is_an_error_unless_optional() {
    let entries = Entries::from([("k".to_owned(), b"v".to_vec())]);
    assert_eq!(entry(Some(entries.clone()), "secret", "s", "k", None).unwrap().as_deref(), Some("v"));
    assert_eq!(entry(Some(entries.clone()), "secret", "s", "x", Some(true)).unwrap(), None);
    let fault = entry(Some(entries), "secret", "s", "x", None).unwrap_err();
    assert_eq!(fault.reason(), "CreateContainerConfigError");
    assert!(present(None, "secret", "s", None).is_err());
    assert!(present(None, "secret", "s", Some(true)).unwrap().is_none());
}
