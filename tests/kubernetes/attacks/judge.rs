//! The oracle: whether an object that exists on the API server is within the policy of `world::POLICY`. It lists what a pod of this
//! one policy may have; everything else is outside. It uses no code of `sparkgate::policy`.

mod properties;
mod resources;
mod volumes;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub(crate) use properties::{outside_beside, outside_in_properties};

/// Names of the objects of a driver, as `kind/name`: what its own pods may refer to.
pub(crate) type Own = BTreeSet<String>;

/// A pod as the API server has it.
pub(crate) struct Seen<'a> {
    pub(crate) pod: &'a Value,
    pub(crate) role: &'a str,
    /// The namespace of the tenant.
    pub(crate) namespace: &'a str,
    /// The uid of the driver that must own it, if it is an executor.
    pub(crate) owner: Option<&'a str>,
    pub(crate) own: &'a Own,
}

/// Fields of a spec that may have any value, because the API server sets or checks them, or because they concern only the pod itself.
const FREE: [&str; 16] = [
    "activeDeadlineSeconds",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "os",
    "preemptionPolicy",
    "priority",
    "readinessGates",
    "restartPolicy",
    "setHostnameAsFQDN",
    "subdomain",
    "securityContext",
    "containers",
    "initContainers",
];
const CONTAINER: [&str; 24] = [
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
    "stdin",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
];
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Returns what is outside the policy in a pod.
pub(crate) fn outside(seen: &Seen<'_>) -> Vec<String> {
    let mut found = Vec::new();
    metadata(seen, &mut found);
    for (field, value) in fields(&seen.pod["spec"]) {
        if !FREE.contains(&field.as_str()) && !spec_field(seen, field, value) {
            found.push(format!("spec.{field}: {value}"));
        }
    }
    security_context(&seen.pod["spec"]["securityContext"], &mut found);
    for container in containers(seen.pod) {
        judge_container(seen, container, &mut found);
    }
    resources::judge(seen.pod, &mut found);
    if seen.role == "driver" && may_run_again(seen.pod) {
        found.push("the driver's container may be restarted".to_owned());
    }
    found
}

/// Returns whether the kubelet may restart the driver's container.
fn may_run_again(pod: &Value) -> bool {
    let driver = text(&pod["metadata"]["annotations"]["sparkgate.dev/driver-container"]);
    let by_itself = |container: &Value| {
        text(&container["name"]) == driver
            && (!matches!(text(&container["restartPolicy"]), "" | "Never")
                || items(&container["restartPolicyRules"]).next().is_some())
    };
    let by_another =
        |container: &Value| items(&container["restartPolicyRules"]).any(|rule| text(&rule["action"]) != "Restart");
    pod["spec"]["restartPolicy"] != "Never" || containers(pod).any(|one| by_itself(one) || by_another(one))
}

/// Returns the entries of an object that are set.
fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null())
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers", "ephemeralContainers"].into_iter().flat_map(move |list| items(&pod["spec"][list]))
}

fn metadata(seen: &Seen<'_>, found: &mut Vec<String>) {
    let metadata = &seen.pod["metadata"];
    if metadata["namespace"] != seen.namespace {
        found.push(format!("namespace {}", metadata["namespace"]));
    }
    let owners: Vec<&str> = items(&metadata["ownerReferences"]).map(|owner| text(&owner["uid"])).collect();
    if owners != seen.owner.into_iter().collect::<Vec<_>>() {
        found.push(format!("owners {owners:?}"));
    }
    for finalizer in items(&metadata["finalizers"]) {
        if seen.role != "driver" || finalizer != "sparkgate.dev/outcome" {
            found.push(format!("finalizer {finalizer}"));
        }
    }
    if metadata["labels"]["spark-role"] != seen.role {
        found.push(format!("role {}", metadata["labels"]["spark-role"]));
    }
    for (key, _) in fields(&metadata["labels"]) {
        if !label(key) {
            found.push(format!("label {key}"));
        }
    }
    for (key, value) in fields(&metadata["annotations"]) {
        if !annotation(key, text(value), seen.role) {
            found.push(format!("annotation {key}={value}"));
        }
    }
}

pub(super) fn label(key: &str) -> bool {
    const PERMITTED: [&str; 11] = [
        "spark-app-name",
        "spark-app-selector",
        "spark-exec-id",
        "spark-exec-inactive",
        "spark-exec-resourceprofile-id",
        "spark-role",
        "spark-version",
        "sparkgate.dev/attempt",
        "sparkgate.dev/instance",
        "sparkgate.dev/submission-id",
        "team",
    ];
    PERMITTED.contains(&key)
}

fn annotation(key: &str, value: &str, role: &str) -> bool {
    match key.split_once('/').map_or("", |(domain, _)| domain) {
        "sparkgate.dev" => {
            role == "driver" && ["sparkgate.dev/identity", "sparkgate.dev/driver-container"].contains(&key)
        }
        "blocked.example.org" => false,
        "container.apparmor.security.beta.kubernetes.io" => {
            value == "runtime/default" || value.starts_with("localhost/")
        }
        domain if domain.ends_with("kubernetes.io") || domain.ends_with("k8s.io") => {
            key == "cluster-autoscaler.kubernetes.io/safe-to-evict"
        }
        _ => true,
    }
}

/// Returns whether a field of a spec is within the policy.
fn spec_field(seen: &Seen<'_>, field: &str, value: &Value) -> bool {
    let all_names = |names: fn(&str) -> bool| items(value).all(|item| names(text(&item["name"])));
    match field {
        "serviceAccountName" | "serviceAccount" => value == "spark",
        "schedulerName" => ["default-scheduler", "team-scheduler"].contains(&text(value)),
        "priorityClassName" => value == "batch",
        "runtimeClassName" => value == "gvisor",
        // Only a runtime class sets it.
        "overhead" => seen.pod["spec"]["runtimeClassName"] == "gvisor",
        "dnsPolicy" => value == "ClusterFirst",
        "hostNetwork" | "hostPID" | "hostIPC" | "shareProcessNamespace" => value == false,
        "terminationGracePeriodSeconds" => value.as_i64().is_some_and(|seconds| seconds <= 120),
        "imagePullSecrets" => all_names(|name| name.starts_with("team-")),
        "nodeSelector" => fields(value).all(|(key, value)| key == "pool" && value == "team"),
        "tolerations" => items(value).all(toleration),
        "affinity" => affinity(value),
        "resources" => true,
        "volumes" => items(value).all(|volume| volumes::permitted(seen, volume)),
        _ => false,
    }
}

fn toleration(toleration: &Value) -> bool {
    // The API server adds these two to each pod (`DefaultTolerationSeconds`).
    const DEFAULT: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let key = text(&toleration["key"]);
    let limited = toleration["effect"] == "NoExecute" && toleration["tolerationSeconds"] == 300;
    key == "pool" || (DEFAULT.contains(&key) && limited)
}

fn affinity(affinity: &Value) -> bool {
    let node = &affinity["nodeAffinity"];
    let required = items(&node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]);
    let preferred = items(&node["preferredDuringSchedulingIgnoredDuringExecution"]).map(|term| &term["preference"]);
    let permitted = |expression: &Value| {
        expression["key"] == "pool"
            && expression["operator"] == "In"
            && items(&expression["values"]).all(|v| v == "team")
    };
    required.chain(preferred).all(|term| {
        fields(term).all(|(field, _)| field == "matchExpressions") && items(&term["matchExpressions"]).all(permitted)
    })
}

/// Judges what the security contexts of pods and containers share.
fn security_context(context: &Value, found: &mut Vec<String>) {
    let profile = |name: &str| ["", "RuntimeDefault", "Localhost"].contains(&text(&context[name]["type"]));
    let selinux = &context["seLinuxOptions"];
    let types = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let fine = profile("seccompProfile")
        && profile("appArmorProfile")
        && types.contains(&text(&selinux["type"]))
        && selinux["user"].is_null()
        && selinux["role"].is_null()
        && context["windowsOptions"]["hostProcess"] != true
        && items(&context["sysctls"]).count() == 0;
    if !fine {
        found.push(format!("securityContext {context}"));
    }
}

fn judge_container(seen: &Seen<'_>, container: &Value, found: &mut Vec<String>) {
    let unknown = fields(container).find(|(field, _)| !CONTAINER.contains(&field.as_str()));
    let context = &container["securityContext"];
    security_context(context, found);
    let checks = [
        ("field", unknown.is_none()),
        ("image", image(text(&container["image"]))),
        ("privileged", context["privileged"] != true),
        ("procMount", ["", "Default"].contains(&text(&context["procMount"]))),
        ("capability", items(&context["capabilities"]["add"]).all(|name| CAPABILITIES.contains(&text(name)))),
        ("hostPort", items(&container["ports"]).all(|port| port["hostPort"].is_null())),
        ("probe", hosts(container).all(Value::is_null)),
        ("mount", items(&container["volumeMounts"]).all(|mount| mount["mountPropagation"] != "Bidirectional")),
        ("env", items(&container["env"]).all(|variable| volumes::variable(seen, variable))),
        ("envFrom", items(&container["envFrom"]).all(|source| volumes::variables(seen, source))),
    ];
    found.extend(checks.iter().filter(|(_, fine)| !fine).map(|(what, _)| format!("{what} of container {container}")));
}

/// Returns the hosts that probes and hooks call.
fn hosts(container: &Value) -> impl Iterator<Item = &Value> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| &container[probe]);
    let hooks = ["postStart", "preStop"].map(|hook| &container["lifecycle"][hook]);
    probes.into_iter().chain(hooks).flat_map(|handler| [&handler["httpGet"]["host"], &handler["tcpSocket"]["host"]])
}

pub(super) fn image(reference: &str) -> bool {
    reference.strip_prefix("registry.example.org/team/").is_some_and(|rest| !rest.split('/').any(|part| part == ".."))
}

/// Returns whether a pod may refer to an existing object: those of the team, and those of its own driver.
fn named(seen: &Seen<'_>, kind: &str, name: &str) -> bool {
    name.starts_with("team-") || seen.own.contains(&format!("{kind}/{name}"))
}

/// Returns whether a map has only these keys.
fn only(map: &Value, keys: &[&str]) -> bool {
    let empty = Map::new();
    map.as_object().unwrap_or(&empty).keys().all(|key| keys.contains(&key.as_str()))
}
