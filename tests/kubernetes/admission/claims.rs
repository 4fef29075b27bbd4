//! Claims that a driver creates.

use serde_json::{Value, json};

use crate::admission::{
    judge, reference, running, with,
    world::{Change, world},
};

const CLAIMS: &str = "/api/v1/namespaces/analytics/persistentvolumeclaims";

/// Returns a claim as Spark's driver creates it for an executor.
fn claim(owner: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "app-exec-1-pvc-0", "labels": { "spark-app-selector": "spark-1" }, "annotations": {},
            "ownerReferences": [reference(owner)]
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": { "requests": { "storage": "1Gi" } }
        }
    })
}

fn create(claim: Value) -> Change<'static> {
    Change::post(CLAIMS.to_owned(), claim)
}

#[tokio::test]
async fn a_driver_claims_only_new_volumes_of_a_permitted_class_and_size() {
    let world = world().await;
    let (own, other) = (running(world, "claims-1").await, running(world, "claims-2").await);
    let changed = |pointer: &str, value: Value| create(with(claim(&own.pod), pointer, value));
    let owner = Some("owned by one pod and has no finalizers");
    let existing = Some("selects and copies no volume");
    let class = Some("doesn't permit the class of a claim");
    let key = Some("doesn't permit a label or annotation of a claim");
    let copied = json!({ "kind": "PersistentVolumeClaim", "name": "colleague" });
    let of_map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": "u" });
    judge(
        world,
        &own.caller,
        vec![
            ("a claim", create(claim(&own.pod)), None),
            ("a claim of its executor", changed("/metadata/ownerReferences", json!([reference(&other.pod)])), None),
            ("a volume by name", changed("/spec/volumeName", json!("b-data")), Some("names no volume")),
            ("a volume by label", changed("/spec/selector", json!({ "matchLabels": { "team": "b" } })), existing),
            ("a copy", changed("/spec/dataSource", copied.clone()), existing),
            ("a copy by reference", changed("/spec/dataSourceRef", copied), existing),
            ("another class", changed("/spec/storageClassName", json!("gold")), class),
            ("the class of existing volumes", changed("/spec/storageClassName", json!("")), class),
            ("no class", changed("/spec/storageClassName", Value::Null), class),
            ("other attributes", changed("/spec/volumeAttributesClassName", json!("fast")), class),
            (
                "another class by annotation",
                changed("/metadata/annotations/volume.beta.kubernetes.io~1storage-class", json!("gold")),
                key,
            ),
            ("a mark of the gateway", changed("/metadata/labels/sparkgate.dev~1submission-id", json!("x")), key),
            ("too much", changed("/spec/resources/requests/storage", json!("3Ti")), Some("at most 2Ti")),
            ("no owner", changed("/metadata/ownerReferences", json!([])), owner),
            ("another owner", changed("/metadata/ownerReferences", json!([of_map])), owner),
            ("a finalizer", changed("/metadata/finalizers", json!(["example.org/hold"])), owner),
        ],
    )
    .await;
    // The gateway judges what it creates before.
    let named = create(with(claim(&own.pod), "/spec/volumeName", json!("data")));
    judge(world, &world.gateway().await, vec![("a claim of the gateway", named, None)]).await;
}
