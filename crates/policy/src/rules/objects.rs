//! What objects a driver consists of, their metadata, and the objects beside the pod.

use super::{fields, labels};
use crate::{
    judgement::Judgement,
    node::{Node, Root},
    schema,
};

const STRUCTURE: &str = "structure";
/// The entry of a `ConfigMap` that holds the executors' pod template (Spark's `PodTemplateConfigMapStep`).
const TEMPLATE_ENTRY: &str = "podspec-configmap-key";

pub(super) fn judge(judgement: &mut Judgement<'_>) {
    if judgement.pod.is_none() {
        judgement.report_at(STRUCTURE, "Pod", "a driver consists of exactly one pod and its objects");
    }
    for object in judgement.judged.objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let root = if kind == "Pod" { Root::Driver } else { Root::Object(kind, name) };
        let node = Node::new(root, object);
        let Some(object_type) = schema::object_type(kind) else {
            judgement.report(STRUCTURE, &node, "a driver has no object of this kind");
            continue;
        };
        if object["apiVersion"] != object_type.api_version {
            let message = format!("its apiVersion must be {}", object_type.api_version);
            judgement.report(STRUCTURE, &node.field("apiVersion"), message);
        }
        fields::judge(judgement, &node, object_type.fields);
        judge_metadata(judgement, &node.field("metadata"));
        judge_spec(judgement, kind, &node);
    }
}

fn judge_spec(judgement: &mut Judgement<'_>, kind: &str, node: &Node<'_>) {
    let spec = node.field("spec");
    match kind {
        "Service" => judge_service(judgement, &spec),
        "PersistentVolumeClaim" => {
            judge_claim(judgement, &spec);
            judge_claim_name(judgement, node);
        }
        "PodGroup" => judge_pod_group(judgement, &spec),
        "NetworkPolicy" => {
            let selector = spec.field("podSelector");
            let labels = selector.field("matchLabels");
            if !labels.field("spark-app-selector").is_set() {
                judgement.report(STRUCTURE, &selector, "it must select only the pods of this application");
            }
        }
        "Secret" if !matches!(node.text_of("type"), "" | "Opaque") => {
            judgement.report(STRUCTURE, &node.field("type"), "the only type of Secret that a driver has is Opaque");
        }
        "ConfigMap" => {
            let template = node.field("data");
            let template = template.field(TEMPLATE_ENTRY);
            if !template.value.is_null() && judgement.judged.executor_template.is_none() {
                judgement.report(STRUCTURE, &template, "the executors' pod template was not given to the policy");
            }
        }
        _ => {}
    }
}

/// Judges namespace, owners, labels and annotations. The table of fields judges the rest.
pub(super) fn judge_metadata(judgement: &mut Judgement<'_>, metadata: &Node<'_>) {
    let namespace = metadata.field("namespace");
    if let (Some(own), Some(expected)) = (namespace.text(), driver_namespace(judgement))
        && own != expected
    {
        judgement.report(STRUCTURE, &namespace, format!("it must be the driver's namespace, {expected}"));
    }
    let owners = metadata.field("ownerReferences");
    let may_have_owner = matches!(metadata.root(), Root::Driver);
    if owners.is_set() && !(may_have_owner && owners.value.is_array() && owners.items().all(|one| is_application(&one)))
    {
        judgement.report(STRUCTURE, &owners, "the gateway and the driver set the owner");
    }
    labels::judge(judgement, metadata);
}

/// Returns whether an owner is an application of Kubeflow's operator, which puts it on its drivers. An owner of another namespace
/// would only delete the pod.
fn is_application(owner: &Node<'_>) -> bool {
    owner.text_of("apiVersion").starts_with("sparkoperator.k8s.io/")
        && matches!(owner.text_of("kind"), "SparkApplication" | "ScheduledSparkApplication")
}

/// Returns the namespace of the driver: the property's, or else that of the first object that names one.
fn driver_namespace<'a>(judgement: &Judgement<'a>) -> Option<&'a str> {
    let property = judgement.judged.property("spark.kubernetes.namespace");
    property.or_else(|| {
        let mut objects = judgement.judged.objects.iter();
        objects.find_map(|object| object["metadata"]["namespace"].as_str())
    })
}

/// Judges the driver's Service, which Spark makes headless (`DriverServiceFeatureStep`).
fn judge_service(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    const RULE: &str = "services";
    if !matches!(spec.text_of("type"), "" | "ClusterIP") {
        judgement.report(RULE, &spec.field("type"), "it must be ClusterIP");
    }
    if spec.text_of("clusterIP") != "None" {
        judgement.report(RULE, &spec.field("clusterIP"), "it must be None: the driver's Service is headless");
    }
    let addresses = spec.field("clusterIPs");
    if addresses.items().any(|address| address.text() != Some("None")) {
        judgement.report(RULE, &addresses, "it must be None: the driver's Service is headless");
    }
    let selector = spec.field("selector");
    if !selector.field("spark-app-selector").is_set() {
        judgement.report(RULE, &selector, "it must select only the pods of this application");
    }
}

/// Judges the spec of a claim that is created.
pub(super) fn judge_claim(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    let rules = judgement.rules;
    for field in ["storageClassName", "volumeAttributesClassName"] {
        let class = spec.field(field);
        let name = class.text().filter(|name| !name.is_empty());
        if let (Some(name), Some(permitted)) = (name, &rules.storage_classes)
            && !permitted.matches(name)
        {
            judgement.report("storageClasses", &class, format!("it must be one of {}", permitted.describe()));
        }
    }
    let class = spec.field("storageClassName");
    match &rules.storage_classes {
        Some(permitted) if class.text().is_none_or(str::is_empty) => {
            let message = format!("a class is required: one of {}", permitted.describe());
            judgement.report("storageClasses", &class, message);
        }
        None if class.text() == Some("") => {
            let message =
                "the class with an empty name is that of volumes that exist already: name another, or leave it out";
            judgement.report("storageClasses", &class, message);
        }
        _ => {}
    }
    for field in ["dataSource", "dataSourceRef"] {
        let source = spec.field(field);
        if !source.is_set() {
            continue;
        }
        let own = source.text_of("kind") == "PersistentVolumeClaim"
            && source.text_of("apiGroup").is_empty()
            && source.text_of("namespace").is_empty();
        let permitted = rules.claims.as_ref().is_none_or(|claims| claims.matches(source.text_of("name")));
        if !own || !permitted {
            judgement.report("claims", &source, "only a permitted claim of the same namespace may be copied");
        }
    }
}

/// Judges the name of a claim that is created. A name that the request chose may be that of an existing claim, which the pod
/// would then mount.
fn judge_claim_name(judgement: &mut Judgement<'_>, claim: &Node<'_>) {
    let metadata = claim.field("metadata");
    let name = metadata.field("name");
    let Some(text) = name.text() else { return };
    if let Some(permitted) = &judgement.rules.claims
        && is_chosen(judgement, text)
        && !permitted.matches(text)
    {
        judgement.report("claims", &name, format!("it must be one of {}", permitted.describe()));
    }
}

/// Returns whether a property of the driver's volumes gives this name to a claim.
pub(super) fn is_chosen(judgement: &Judgement<'_>, claim: &str) -> bool {
    let mut options = judgement.judged.family("spark.kubernetes.driver.volumes.persistentVolumeClaim.");
    options.any(|(key, value)| key.ends_with(".options.claimName") && value == claim)
}

fn judge_pod_group(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    super::kueue::judge_queue(judgement, &spec.field("queue"));
    super::scheduling::judge_priority_class(judgement, &spec.field("priorityClassName"));
}
