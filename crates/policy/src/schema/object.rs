//! The fields of metadata, and of the objects beside the pod.

use super::{
    Field,
    Kind::{Any, Bool, Int, Object, Objects, QuantityMap, Scalar, Text, TextMap, Texts},
    free, refused, ruled,
};

/// Why a field of the Service is refused.
const HEADLESS: &str = "the driver's Service is headless and reachable only inside the cluster";

pub(super) const CLIENT_IP_CONFIG: [Field; 1] = [free("timeoutSeconds", Int)];

pub(super) const LABEL_SELECTOR: [Field; 2] =
    [free("matchExpressions", Objects(&LABEL_SELECTOR_REQUIREMENT)), free("matchLabels", TextMap)];

pub(super) const LABEL_SELECTOR_REQUIREMENT: [Field; 3] =
    [free("key", Text), free("operator", Text), free("values", Texts)];

pub(super) const NETWORK_POLICY_SPEC: [Field; 4] = [
    free("egress", Any),
    free("ingress", Any),
    free("podSelector", Object(&LABEL_SELECTOR)),
    free("policyTypes", Texts),
];

pub(super) const OBJECT_META: [Field; 15] = [
    ruled("annotations", TextMap, "annotations"),
    refused("creationTimestamp", Text, "structure", "the API server sets it"),
    refused("deletionGracePeriodSeconds", Int, "structure", "the API server sets it"),
    refused("deletionTimestamp", Text, "structure", "the API server sets it"),
    refused("finalizers", Texts, "structure", "only the gateway holds objects by finalizers"),
    refused(
        "generateName",
        Text,
        "structure",
        "an object is created under a fixed name, so that a repeated creation is detected",
    ),
    refused("generation", Int, "structure", "the API server sets it"),
    ruled("labels", TextMap, "labels"),
    refused("managedFields", Any, "structure", "the API server sets it"),
    free("name", Text),
    ruled("namespace", Text, "structure"),
    ruled("ownerReferences", Any, "structure"),
    refused("resourceVersion", Text, "structure", "the API server sets it"),
    refused("selfLink", Text, "structure", "the API server sets it"),
    refused("uid", Text, "structure", "the API server sets it"),
];

pub(super) const CLAIM_SPEC: [Field; 9] = [
    free("accessModes", Texts),
    ruled("dataSource", Object(&TYPED_LOCAL_OBJECT_REFERENCE), "claims"),
    ruled("dataSourceRef", Object(&TYPED_OBJECT_REFERENCE), "claims"),
    ruled("resources", Object(&VOLUME_RESOURCE_REQUIREMENTS), "limits"),
    refused("selector", Any, "claims", "the volume is selected by its class"),
    ruled("storageClassName", Text, "storageClasses"),
    ruled("volumeAttributesClassName", Text, "storageClasses"),
    free("volumeMode", Text),
    refused("volumeName", Text, "claims", "the volume is selected by its class"),
];

pub(super) const SERVICE_PORT: [Field; 6] = [
    free("appProtocol", Text),
    free("name", Text),
    refused("nodePort", Int, "services", HEADLESS),
    free("port", Int),
    free("protocol", Text),
    free("targetPort", Scalar),
];

pub(super) const SERVICE_SPEC: [Field; 20] = [
    refused("allocateLoadBalancerNodePorts", Bool, "services", HEADLESS),
    ruled("clusterIP", Text, "services"),
    ruled("clusterIPs", Texts, "services"),
    refused("externalIPs", Texts, "services", HEADLESS),
    refused("externalName", Text, "services", HEADLESS),
    refused("externalTrafficPolicy", Text, "services", HEADLESS),
    refused("healthCheckNodePort", Int, "services", HEADLESS),
    free("internalTrafficPolicy", Text),
    free("ipFamilies", Texts),
    free("ipFamilyPolicy", Text),
    refused("loadBalancerClass", Text, "services", HEADLESS),
    refused("loadBalancerIP", Text, "services", HEADLESS),
    refused("loadBalancerSourceRanges", Texts, "services", HEADLESS),
    free("ports", Objects(&SERVICE_PORT)),
    free("publishNotReadyAddresses", Bool),
    ruled("selector", TextMap, "services"),
    free("sessionAffinity", Text),
    free("sessionAffinityConfig", Object(&SESSION_AFFINITY_CONFIG)),
    free("trafficDistribution", Text),
    ruled("type", Text, "services"),
];

pub(super) const SESSION_AFFINITY_CONFIG: [Field; 1] = [free("clientIP", Object(&CLIENT_IP_CONFIG))];

pub(super) const TYPED_LOCAL_OBJECT_REFERENCE: [Field; 3] =
    [free("apiGroup", Text), free("kind", Text), free("name", Text)];

pub(super) const TYPED_OBJECT_REFERENCE: [Field; 4] =
    [free("apiGroup", Text), free("kind", Text), free("name", Text), free("namespace", Text)];

pub(super) const VOLUME_RESOURCE_REQUIREMENTS: [Field; 2] =
    [free("limits", QuantityMap), free("requests", QuantityMap)];

/// `scheduling.volcano.sh/v1beta1`, the spec of a `PodGroup`.
pub(super) const POD_GROUP_SPEC: [Field; 7] = [
    free("minMember", Int),
    free("minResources", QuantityMap),
    free("minTaskMember", Any),
    free("networkTopology", Any),
    ruled("priorityClassName", Text, "priorityClasses"),
    ruled("queue", Text, "queues"),
    free("subGroupPolicy", Any),
];
