//! What a pod reserves on its node, from the requests of its containers.

use super::slim_pod::{Amounts, RestartPolicy, SlimPod, Spec, time};
use sparkgate_submission::Reservation;

/// Returns what a pod reserves, and since when.
pub(super) fn reservation(pod: &SlimPod) -> Reservation {
    Reservation {
        millicores: of(&pod.spec, |amounts| amounts.cpu),
        memory_bytes: of(&pod.spec, |amounts| amounts.memory),
        since: pod.status.start_time.as_ref().and_then(time),
    }
}

/// Computes the request for one resource as the scheduler does (`PodRequests` of `k8s.io/component-helpers`): what the containers
/// request together with the sidecars, or what the init containers need before, whichever is more; a request of the pod itself
/// counts instead. The overhead of the runtime class is added.
fn of(spec: &Spec, resource: fn(&Amounts) -> i64) -> i64 {
    let (mut sidecars, mut before) = (0_i64, 0);
    for container in &spec.init_containers {
        let together = sidecars.saturating_add(resource(&container.resources.requests));
        before = before.max(together);
        if container.restart_policy == Some(RestartPolicy::Always) {
            sidecars = together;
        }
    }
    let requests = spec.containers.iter().map(|container| resource(&container.resources.requests));
    let containers = requests.fold(sidecars, i64::saturating_add).max(before);
    let pod = Some(resource(&spec.resources.requests)).filter(|request| *request > 0).unwrap_or(containers);
    pod.saturating_add(resource(&spec.overhead))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reserves(spec: &Value) -> (i64, i64) {
        let pod: SlimPod = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        let Reservation { millicores, memory_bytes, since } = reservation(&pod);
        assert_eq!(since, None);
        (millicores, memory_bytes)
    }

    fn asks(cpu: &str, memory: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory, "nvidia.com/gpu": "1"},
            "limits": {"memory": memory}}})
    }

    #[test]
    fn requests_of_containers_are_added_up() {
        assert_eq!(reserves(&json!({"containers": [asks("1", "1408Mi"), asks("100m", "64Mi")]})), (1100, 1472 << 20));
        assert_eq!(reserves(&json!({"containers": [{"name": "c"}, {"name": "d", "resources": {}}]})), (0, 0));
        assert_eq!(reserves(&json!({"containers": [asks("much", "-1")]})), (0, 0), "no quantities that could be meant");
        let numbers = json!({"name": "c", "resources": {"requests": {"cpu": 1, "memory": 1.5}}});
        assert_eq!(reserves(&json!({"containers": [numbers]})), (1000, 2));
    }

    #[test]
    fn an_init_container_counts_if_it_needs_more_than_the_containers() {
        let with = |init: Value| reserves(&json!({"containers": [asks("1", "1Gi")], "initContainers": init}));
        assert_eq!(with(json!([asks("2", "512Mi"), asks("1500m", "256Mi")])), (2000, 1 << 30));
        let mut sidecar = asks("500m", "1Gi");
        sidecar["restartPolicy"] = "Always".into();
        assert_eq!(with(json!([sidecar])), (1500, 2 << 30));
        assert_eq!(with(json!([sidecar, asks("2", "0")])), (2500, 2 << 30), "it runs beside the sidecar");
        assert_eq!(with(json!([asks("1700m", "0"), sidecar])), (1700, 2 << 30), "it ends before the sidecar starts");
    }

    #[test]
    fn a_request_of_the_pod_replaces_those_of_its_containers_and_the_overhead_is_added() {
        let pod = json!({"containers": [asks("1", "1Gi")], "resources": {"requests": {"cpu": "3"}},
            "overhead": {"cpu": "250m", "memory": "120Mi"}});
        assert_eq!(reserves(&pod), (3250, (1024 + 120) << 20));
    }
}
