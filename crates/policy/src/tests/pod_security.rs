//! The Pod Security Standards, for each kind of container and for executors.

use serde_json::{Value, json};

use super::Driver;

/// What the level baseline refuses in a container.
fn bad_containers() -> Vec<Value> {
    let context = |context: Value| json!({ "securityContext": context });
    vec![
        context(json!({ "privileged": true })),
        context(json!({ "capabilities": { "add": ["SYS_ADMIN"] } })),
        context(json!({ "capabilities": { "add": ["CHOWN", "sys_admin"] } })),
        context(json!({ "capabilities": { "add": ["ALL"] } })),
        context(json!({ "procMount": "Unmasked" })),
        context(json!({ "seccompProfile": { "type": "Unconfined" } })),
        context(json!({ "appArmorProfile": { "type": "Unconfined" } })),
        context(json!({ "seLinuxOptions": { "type": "spc_t" } })),
        context(json!({ "seLinuxOptions": { "user": "system_u" } })),
        context(json!({ "seLinuxOptions": { "role": "system_r" } })),
        context(json!({ "windowsOptions": { "hostProcess": true } })),
        json!({ "ports": [{ "containerPort": 1, "hostPort": 80 }] }),
        json!({ "livenessProbe": { "httpGet": { "port": 1, "host": "169.254.169.254" } } }),
        json!({ "startupProbe": { "tcpSocket": { "port": 1, "host": "10.0.0.1" } } }),
        json!({ "lifecycle": { "preStop": { "httpGet": { "port": 1, "host": "10.0.0.1" } } } }),
        json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional" }] }),
    ]
}

/// What the level baseline refuses in the spec of a pod.
fn bad_specs() -> Vec<Value> {
    vec![
        json!({ "hostNetwork": true }),
        json!({ "hostPID": true }),
        json!({ "hostIPC": true }),
        json!({ "volumes": [{ "name": "v", "hostPath": { "path": "/data" } }] }),
        json!({ "securityContext": { "sysctls": [{ "name": "kernel.msgmax", "value": "1" }] } }),
        json!({ "securityContext": { "seccompProfile": { "type": "Unconfined" } } }),
        json!({ "securityContext": { "appArmorProfile": { "type": "Unconfined" } } }),
        json!({ "securityContext": { "seLinuxOptions": { "type": "spc_t" } } }),
        json!({ "securityContext": { "windowsOptions": { "hostProcess": true } } }),
    ]
}

fn named(mut container: Value) -> Value {
    container["name"] = json!("main");
    container["image"] = json!("a");
    container
}

#[test]
fn baseline_judges_all_kinds_of_containers() {
    for container in bad_containers() {
        for list in ["containers", "initContainers"] {
            let mut spec = json!({ "containers": [{ "name": "main" }] });
            spec[list] = json!([named(container.clone())]);
            Driver::with_spec(spec.clone()).breaks(json!({}), "podSecurity");
            Driver::with_executor_spec(spec).breaks(json!({}), "podSecurity");
        }
        let driver = Driver::new(&[]).set("/spec/ephemeralContainers", json!([named(container)]));
        driver.breaks(json!({}), "podSecurity");
        driver.breaks(json!({}), "structure");
    }
}

#[test]
fn baseline_judges_the_spec_of_drivers_and_executors() {
    for spec in bad_specs() {
        Driver::with_spec(spec.clone()).breaks(json!({}), "podSecurity");
        Driver::with_executor_spec(spec).breaks(json!({}), "podSecurity");
    }
}

#[test]
fn baseline_permits_what_a_runtime_permits_by_default() {
    let spec = json!({
        "containers": [{
            "name": "main",
            "securityContext": {
                "privileged": false, "procMount": "Default", "capabilities": { "add": ["CHOWN"], "drop": ["ALL"] },
                "seccompProfile": { "type": "RuntimeDefault" }, "seLinuxOptions": { "type": "container_t", "level": "s0" },
                "appArmorProfile": { "type": "Localhost", "localhostProfile": "a" }
            },
            "ports": [{ "containerPort": 1, "hostPort": 0 }],
            "readinessProbe": { "httpGet": { "port": "ui", "path": "/" } }
        }],
        "hostNetwork": false,
        "securityContext": {
            "sysctls": [{ "name": "net.ipv4.ip_local_port_range", "value": "1 2" }], "fsGroup": 1, "supplementalGroups": [1]
        }
    });
    Driver::with_spec(spec.clone()).passes(json!({}));
    Driver::with_executor_spec(spec).passes(json!({}));
}

#[test]
fn privileged_permits_all_of_it() {
    let privileged = json!({
        "podSecurity": "privileged", "volumes": ["hostPath", "configMap", "emptyDir"], "hostPaths": ["/data"]
    });
    for spec in bad_specs() {
        Driver::with_spec(spec).passes(privileged.clone());
    }
}

#[test]
fn annotations_of_app_armor_are_judged() {
    let key = "spark.kubernetes.driver.annotation.container.apparmor.security.beta.kubernetes.io/main";
    Driver::new(&[(key, "runtime/default")]).passes(json!({}));
    Driver::new(&[(key, "unconfined")]).breaks(json!({}), "podSecurity");
    let key = "spark.kubernetes.executor.annotation.container.apparmor.security.beta.kubernetes.io/main";
    Driver::new(&[(key, "unconfined")]).breaks(json!({}), "podSecurity");
    let key = "spark.kubernetes.driver.annotation.seccomp.security.alpha.kubernetes.io/pod";
    Driver::new(&[(key, "unconfined")]).breaks(json!({}), "annotations");
}

/// A spec that meets the level restricted.
fn hardened() -> Value {
    json!({
        "securityContext": { "runAsNonRoot": true, "runAsUser": 185, "seccompProfile": { "type": "RuntimeDefault" } },
        "containers": [{ "name": "main", "securityContext": { "capabilities": { "drop": ["ALL"] } } }]
    })
}

#[test]
fn restricted_requires_hardened_drivers_and_executors() {
    let restricted = json!({ "podSecurity": "restricted" });
    let both = |spec: Value| Driver::build(&[], Some(super::template(spec.clone())), Some(super::template(spec)));
    both(hardened()).passes(restricted.clone());
    Driver::with_spec(hardened()).breaks(restricted.clone(), "podSecurity");
    Driver::with_executor_spec(hardened()).breaks(restricted.clone(), "podSecurity");
    for (pointer, value) in [
        ("/securityContext/runAsNonRoot", json!(false)),
        ("/securityContext/runAsUser", json!(0)),
        ("/securityContext/seccompProfile", Value::Null),
        ("/containers/0/securityContext/capabilities/drop", json!(["CHOWN"])),
        ("/containers/0/securityContext/runAsNonRoot", json!(false)),
        ("/containers/0/securityContext/runAsUser", json!(0)),
        ("/containers/0/securityContext/capabilities/add", json!(["CHOWN"])),
        ("/volumes", json!([{ "name": "v", "nfs": { "server": "a", "path": "/" } }])),
        ("/initContainers", json!([{ "name": "init", "image": "a" }])),
    ] {
        let mut spec = hardened();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[field] = value;
        both(spec).breaks(restricted.clone(), "podSecurity");
    }
    let key = "spark.kubernetes.executor.securityContext.allowPrivilegeEscalation";
    let driver = Driver::build(&[(key, "true")], Some(super::template(hardened())), Some(super::template(hardened())));
    assert_eq!(
        driver.violations(restricted),
        ["podSecurity Executor/spec/containers/0/securityContext/allowPrivilegeEscalation"]
    );
}
