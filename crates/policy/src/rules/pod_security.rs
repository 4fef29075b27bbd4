//! Kubernetes' Pod Security Standards (<https://kubernetes.io/docs/concepts/security/pod-security-standards/>), each control of the
//! levels Baseline and Restricted, in the order of that page. Its exceptions for Windows are left out: Spark runs on Linux.

use serde_json::Value;

use super::each_container;
use crate::{
    document::PodSecurity,
    judgement::Judgement,
    node::{Node, shortened},
};

const RULE: &str = "podSecurity";

/// Capabilities that a container may add at the level Baseline: those of a container runtime's default.
const BASELINE_CAPABILITIES: [&str; 13] = [
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

/// Sysctls that are isolated from other pods.
const SAFE_SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

const SELINUX_TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Types of volumes of the level Restricted.
const RESTRICTED_VOLUMES: [&str; 8] =
    ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"];

const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn judge(judgement: &mut Judgement<'_>, pod: &Node<'_>) {
    if !judgement.rules.requires(PodSecurity::Baseline) {
        return;
    }
    let spec = pod.field("spec");
    let context = spec.field("securityContext");
    for name in ["hostNetwork", "hostPID", "hostIPC"] {
        must_be_false(judgement, &spec.field(name));
    }
    for volume in spec.field("volumes").items() {
        let path = volume.field("hostPath");
        if !path.value.is_null() {
            judgement.report(RULE, &path, "the level baseline has no hostPath volumes");
        }
    }
    apparmor_annotations(judgement, &pod.field("metadata"));
    common(judgement, &context);
    for sysctl in context.field("sysctls").items() {
        if !SAFE_SYSCTLS.contains(&sysctl.text_of("name")) {
            judgement.report(RULE, &sysctl.field("name"), "this sysctl is not one of the safe ones");
        }
    }
    each_container(&spec, |container| {
        common(judgement, &container.field("securityContext"));
        baseline(judgement, container);
    });
    if judgement.rules.requires(PodSecurity::Restricted) {
        restricted(judgement, &spec);
    }
}

fn must_be_false(judgement: &mut Judgement<'_>, node: &Node<'_>) {
    if !matches!(node.value, Value::Null | Value::Bool(false)) {
        judgement.report(RULE, node, "it must be false or absent");
    }
}

fn must_be_one_of(judgement: &mut Judgement<'_>, node: &Node<'_>, words: &[&str]) {
    let fits = match node.value {
        Value::Null => true,
        Value::String(word) => words.contains(&word.as_str()),
        _ => false,
    };
    if !fits {
        let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
        let message = match words.is_empty() {
            true => "it must not be set".to_owned(),
            false => format!("it must be {} or absent", words.join(", ")),
        };
        judgement.report(RULE, node, message);
    }
}

/// Judges what the security contexts of pods and containers share.
fn common(judgement: &mut Judgement<'_>, context: &Node<'_>) {
    must_be_false(judgement, &context.field("windowsOptions").field("hostProcess"));
    must_be_one_of(judgement, &context.field("appArmorProfile").field("type"), &["RuntimeDefault", "Localhost"]);
    let selinux = context.field("seLinuxOptions");
    must_be_one_of(judgement, &selinux.field("type"), &SELINUX_TYPES);
    must_be_one_of(judgement, &selinux.field("user"), &[""]);
    must_be_one_of(judgement, &selinux.field("role"), &[""]);
    must_be_one_of(judgement, &context.field("seccompProfile").field("type"), &["RuntimeDefault", "Localhost"]);
}

/// Judges what only containers have.
fn baseline(judgement: &mut Judgement<'_>, container: &Node<'_>) {
    let context = container.field("securityContext");
    must_be_false(judgement, &context.field("privileged"));
    for capability in context.field("capabilities").field("add").items() {
        if !capability.text().is_some_and(|name| BASELINE_CAPABILITIES.contains(&name)) {
            judgement.report(RULE, &capability, "the level baseline doesn't permit this capability");
        }
    }
    must_be_one_of(judgement, &context.field("procMount"), &["Default"]);
    for port in container.field("ports").items() {
        let port = port.field("hostPort");
        if !port.value.is_null() && port.value.as_i64() != Some(0) {
            judgement.report(RULE, &port, "a container must not use a port of the node");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        probe_host(judgement, &container.field(probe));
    }
    let lifecycle = container.field("lifecycle");
    probe_host(judgement, &lifecycle.field("postStart"));
    probe_host(judgement, &lifecycle.field("preStop"));
    for mount in container.field("volumeMounts").items() {
        // Beyond the standard: Kubernetes itself permits it only to privileged containers.
        must_be_one_of(judgement, &mount.field("mountPropagation"), &["", "None", "HostToContainer"]);
    }
}

/// Judges the host of a probe or hook: another one than the pod lets the kubelet call any address.
fn probe_host(judgement: &mut Judgement<'_>, handler: &Node<'_>) {
    must_be_one_of(judgement, &handler.field("httpGet").field("host"), &[""]);
    must_be_one_of(judgement, &handler.field("tcpSocket").field("host"), &[""]);
}

fn apparmor_annotations(judgement: &mut Judgement<'_>, metadata: &Node<'_>) {
    for (key, node) in metadata.field("annotations").entries() {
        let profile = node.text().unwrap_or_default();
        let permitted = profile == "runtime/default" || profile.starts_with("localhost/");
        if key.starts_with(APPARMOR_ANNOTATION) && !permitted {
            judgement.report(RULE, &node, "the profile must be runtime/default or localhost/…");
        }
    }
}

fn restricted(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    for volume in spec.field("volumes").items() {
        for (kind, source) in volume.entries() {
            if kind != "name" && !source.value.is_null() && !RESTRICTED_VOLUMES.contains(&kind) {
                let message = format!("the level restricted has no {} volumes", shortened(kind));
                judgement.report(RULE, &source, message);
            }
        }
    }
    let pod = spec.field("securityContext");
    let pod_non_root = pod.field("runAsNonRoot");
    let pod_profile = pod.field("seccompProfile");
    let pod_profile = pod_profile.field("type");
    not_root(judgement, &pod);
    each_container(spec, |container| {
        let context = container.field("securityContext");
        if context.field("allowPrivilegeEscalation").value != &Value::Bool(false) {
            judgement.report(RULE, &context.field("allowPrivilegeEscalation"), "it must be false");
        }
        let non_root = context.field("runAsNonRoot");
        let effective = if non_root.value.is_null() { &pod_non_root } else { &non_root };
        if !effective.is_true() {
            judgement.report(RULE, &non_root, "it must be true, here or for the pod");
        }
        not_root(judgement, &context);
        let profile = context.field("seccompProfile");
        let profile = profile.field("type");
        if profile.value.is_null() && pod_profile.value.is_null() {
            judgement.report(RULE, &profile, "it must be RuntimeDefault or Localhost, here or for the pod");
        }
        capabilities(judgement, &context.field("capabilities"));
    });
}

fn not_root(judgement: &mut Judgement<'_>, context: &Node<'_>) {
    let user = context.field("runAsUser");
    if user.value.as_i64() == Some(0) {
        judgement.report(RULE, &user, "it must not be 0");
    }
}

fn capabilities(judgement: &mut Judgement<'_>, capabilities: &Node<'_>) {
    let drop = capabilities.field("drop");
    if !drop.items().any(|capability| capability.text() == Some("ALL")) {
        judgement.report(RULE, &drop, "it must contain ALL");
    }
    for capability in capabilities.field("add").items() {
        // What the level baseline refuses is reported already.
        let name = capability.text().unwrap_or_default();
        if name != "NET_BIND_SERVICE" && BASELINE_CAPABILITIES.contains(&name) {
            judgement.report(RULE, &capability, "the level restricted permits only NET_BIND_SERVICE");
        }
    }
}
