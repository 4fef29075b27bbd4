//! Whatever is judged, judging ends with a verdict.

use std::{collections::BTreeMap, sync::LazyLock};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Driver, policy, usual};
use crate::{Judged, Policy};
use sparkgate_spark::Quantity;

/// Names that rules look for, so that arbitrary values reach them.
const NAMES: [&str; 24] = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "containers",
    "initContainers",
    "volumes",
    "name",
    "image",
    "env",
    "securityContext",
    "resources",
    "requests",
    "memory",
    "labels",
    "annotations",
    "hostPath",
    "projected",
    "sources",
    "tolerations",
    "affinity",
    "nodeAffinity",
    "data",
    "namespace",
];
const WORDS: [&str; 8] = ["Pod", "Service", "v1", "a", "", "-1", "1e99", "${x}"];

static STRICT: LazyLock<Policy> = LazyLock::new(|| {
    let mut document = usual();
    document["podSecurity"] = json!("restricted");
    policy(document)
});
static DRIVER: LazyLock<Driver> = LazyLock::new(|| Driver::new(&[]));

fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop::sample::select(&WORDS[..]).prop_map(Value::from),
    ];
    scalar.prop_recursive(6, 64, 6, |inner| {
        let key = prop_oneof![4 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned), 1 => ".{0,8}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn properties() -> impl Strategy<Value = BTreeMap<String, String>> {
    let keys: Vec<&str> =
        sparkgate_spark::keys::KEYS.iter().flat_map(|section| section.keys).map(|row| row.key).collect();
    let key = (prop::sample::select(keys), "[a-z./]{0,12}")
        .prop_map(|(key, rest)| if key.ends_with('.') { format!("{key}{rest}") } else { key.to_owned() });
    let value = prop_oneof![".{0,12}", "[0-9]{0,20}[a-zA-Z]{0,3}"];
    prop::collection::btree_map(key, value, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn judging_never_panics(
        objects in prop::collection::vec(values(), 0..4),
        properties in properties(),
        template in prop::option::of(values()),
        address in ".{0,16}",
    ) {
        let origins = BTreeMap::new();
        let judged = Judged {
            objects: &objects,
            properties: &properties,
            origins: &origins,
            driver_template: template.as_ref(),
            executor_template: template.as_ref(),
            resources: &[("appResource", &address)],
            of_operator: false,
        };
        let violations = STRICT.judge(&judged);
        prop_assert!(violations.len() <= 101);
        // Only a whole driver passes.
        prop_assert!(!violations.is_empty());
    }

    #[test]
    fn a_value_at_any_field_of_a_pod_never_panics(value in values(), name in prop::sample::select(&NAMES[..])) {
        let mut driver = DRIVER.clone();
        driver.object("Pod")["spec"][name] = value.clone();
        driver.executor_template = Some(json!({ "metadata": { name: value }, "spec": { name: value } }));
        driver.judge(&STRICT);
    }

    #[test]
    fn a_quantity_that_is_read_is_written_and_read_again(text in "[+-]?[0-9]{1,12}(\\.[0-9]{0,9})?(m|k|M|G|Ki|Mi|Gi|e3)?") {
        let quantity = Quantity::parse(&text).unwrap();
        prop_assert_eq!(Quantity::parse(&quantity.as_number()), Some(quantity));
    }
}
