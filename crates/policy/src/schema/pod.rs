//! The fields of a pod's spec.

use super::{
    Field,
    Kind::{Any, Bool, Int, Ints, Object, Objects, QuantityMap, Text, TextMap, Texts},
    container::{
        APP_ARMOR_PROFILE, CONTAINER, EPHEMERAL_CONTAINER, RESOURCE_REQUIREMENTS, SE_LINUX_OPTIONS, SECCOMP_PROFILE,
        WINDOWS_SECURITY_CONTEXT_OPTIONS,
    },
    free,
    object::LABEL_SELECTOR,
    refused, ruled,
    volume::{LOCAL_OBJECT_REFERENCE, VOLUME},
};

pub(super) const AFFINITY: [Field; 3] = [
    free("nodeAffinity", Object(&NODE_AFFINITY)),
    free("podAffinity", Object(&POD_AFFINITY)),
    free("podAntiAffinity", Object(&POD_ANTI_AFFINITY)),
];

pub(super) const HOST_ALIAS: [Field; 2] = [free("hostnames", Texts), free("ip", Text)];

pub(super) const NODE_AFFINITY: [Field; 2] = [
    free("preferredDuringSchedulingIgnoredDuringExecution", Objects(&PREFERRED_SCHEDULING_TERM)),
    free("requiredDuringSchedulingIgnoredDuringExecution", Object(&NODE_SELECTOR)),
];

pub(super) const NODE_SELECTOR: [Field; 1] = [free("nodeSelectorTerms", Objects(&NODE_SELECTOR_TERM))];

pub(super) const NODE_SELECTOR_REQUIREMENT: [Field; 3] =
    [free("key", Text), free("operator", Text), free("values", Texts)];

pub(super) const NODE_SELECTOR_TERM: [Field; 2] = [
    ruled("matchExpressions", Objects(&NODE_SELECTOR_REQUIREMENT), "nodeSelectors"),
    refused("matchFields", Any, "structure", "the scheduler selects the node"),
];

pub(super) const POD_AFFINITY: [Field; 2] = [
    free("preferredDuringSchedulingIgnoredDuringExecution", Objects(&WEIGHTED_POD_AFFINITY_TERM)),
    free("requiredDuringSchedulingIgnoredDuringExecution", Objects(&POD_AFFINITY_TERM)),
];

pub(super) const POD_AFFINITY_TERM: [Field; 6] = [
    free("labelSelector", Object(&LABEL_SELECTOR)),
    free("matchLabelKeys", Texts),
    free("mismatchLabelKeys", Texts),
    free("namespaceSelector", Object(&LABEL_SELECTOR)),
    free("namespaces", Texts),
    free("topologyKey", Text),
];

pub(super) const POD_ANTI_AFFINITY: [Field; 2] = [
    free("preferredDuringSchedulingIgnoredDuringExecution", Objects(&WEIGHTED_POD_AFFINITY_TERM)),
    free("requiredDuringSchedulingIgnoredDuringExecution", Objects(&POD_AFFINITY_TERM)),
];

pub(super) const POD_DNS_CONFIG: [Field; 3] =
    [free("nameservers", Texts), free("options", Objects(&POD_DNS_CONFIG_OPTION)), free("searches", Texts)];

pub(super) const POD_DNS_CONFIG_OPTION: [Field; 2] = [free("name", Text), free("value", Text)];

pub(super) const POD_OS: [Field; 1] = [free("name", Text)];

pub(super) const POD_READINESS_GATE: [Field; 1] = [free("conditionType", Text)];

pub(super) const POD_RESOURCE_CLAIM: [Field; 3] =
    [free("name", Text), free("resourceClaimName", Text), free("resourceClaimTemplateName", Text)];

pub(super) const POD_SECURITY_CONTEXT: [Field; 13] = [
    ruled("appArmorProfile", Object(&APP_ARMOR_PROFILE), "podSecurity"),
    free("fsGroup", Int),
    free("fsGroupChangePolicy", Text),
    free("runAsGroup", Int),
    ruled("runAsNonRoot", Bool, "podSecurity"),
    ruled("runAsUser", Int, "podSecurity"),
    free("seLinuxChangePolicy", Text),
    ruled("seLinuxOptions", Object(&SE_LINUX_OPTIONS), "podSecurity"),
    ruled("seccompProfile", Object(&SECCOMP_PROFILE), "podSecurity"),
    free("supplementalGroups", Ints),
    free("supplementalGroupsPolicy", Text),
    ruled("sysctls", Objects(&SYSCTL), "podSecurity"),
    ruled("windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS), "podSecurity"),
];

pub(super) const POD_SPEC: [Field; 43] = [
    ruled("activeDeadlineSeconds", Int, "limits"),
    ruled("affinity", Object(&AFFINITY), "affinity"),
    ruled("automountServiceAccountToken", Bool, "serviceAccountTokens"),
    free("containers", Objects(&CONTAINER)),
    ruled("dnsConfig", Object(&POD_DNS_CONFIG), "dns"),
    ruled("dnsPolicy", Text, "dns"),
    free("enableServiceLinks", Bool),
    refused(
        "ephemeralContainers",
        Objects(&EPHEMERAL_CONTAINER),
        "structure",
        "a pod is created without ephemeral containers",
    ),
    refused("evictionResponders", Any, "structure", "evictions of a Spark pod are not delegated"),
    ruled("hostAliases", Objects(&HOST_ALIAS), "hostAliases"),
    ruled("hostIPC", Bool, "podSecurity"),
    ruled("hostNetwork", Bool, "podSecurity"),
    ruled("hostPID", Bool, "podSecurity"),
    free("hostUsers", Bool),
    free("hostname", Text),
    free("hostnameOverride", Text),
    ruled("imagePullSecrets", Objects(&LOCAL_OBJECT_REFERENCE), "secrets"),
    free("initContainers", Objects(&CONTAINER)),
    refused("nodeName", Text, "structure", "the scheduler selects the node"),
    ruled("nodeSelector", TextMap, "nodeSelectors"),
    free("os", Object(&POD_OS)),
    refused("overhead", QuantityMap, "structure", "only a runtime class sets it"),
    ruled("preemptionPolicy", Text, "preemption"),
    refused("priority", Int, "priorityClasses", "only a priority class sets it"),
    ruled("priorityClassName", Text, "priorityClasses"),
    free("readinessGates", Objects(&POD_READINESS_GATE)),
    ruled("resourceClaims", Objects(&POD_RESOURCE_CLAIM), "resourceClaims"),
    ruled("resources", Object(&RESOURCE_REQUIREMENTS), "limits"),
    ruled("restartPolicy", Text, "restarts"),
    ruled("runtimeClassName", Text, "runtimeClasses"),
    ruled("schedulerName", Text, "schedulers"),
    refused("schedulingGates", Any, "structure", "the pod would never be scheduled"),
    refused("schedulingGroup", Any, "structure", "the pod would join a group of other pods"),
    free("securityContext", Object(&POD_SECURITY_CONTEXT)),
    ruled("serviceAccount", Text, "serviceAccounts"),
    ruled("serviceAccountName", Text, "serviceAccounts"),
    free("setHostnameAsFQDN", Bool),
    ruled("shareProcessNamespace", Bool, "shareProcessNamespace"),
    free("subdomain", Text),
    ruled("terminationGracePeriodSeconds", Int, "limits"),
    ruled("tolerations", Objects(&TOLERATION), "tolerations"),
    ruled("topologySpreadConstraints", Objects(&TOPOLOGY_SPREAD_CONSTRAINT), "topologySpread"),
    free("volumes", Objects(&VOLUME)),
];

pub(super) const PREFERRED_SCHEDULING_TERM: [Field; 2] =
    [free("preference", Object(&NODE_SELECTOR_TERM)), free("weight", Int)];

pub(super) const SYSCTL: [Field; 2] = [free("name", Text), free("value", Text)];

pub(super) const TOLERATION: [Field; 5] = [
    free("effect", Text),
    free("key", Text),
    free("operator", Text),
    free("tolerationSeconds", Int),
    free("value", Text),
];

pub(super) const TOPOLOGY_SPREAD_CONSTRAINT: [Field; 8] = [
    free("labelSelector", Object(&LABEL_SELECTOR)),
    free("matchLabelKeys", Texts),
    free("maxSkew", Int),
    free("minDomains", Int),
    free("nodeAffinityPolicy", Text),
    free("nodeTaintsPolicy", Text),
    free("topologyKey", Text),
    free("whenUnsatisfiable", Text),
];

pub(super) const WEIGHTED_POD_AFFINITY_TERM: [Field; 2] =
    [free("podAffinityTerm", Object(&POD_AFFINITY_TERM)), free("weight", Int)];
