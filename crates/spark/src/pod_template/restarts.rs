//! Fields by which the kubelet would run the driver again, whatever the pod's own `restartPolicy` is
//! (<https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#individual-container-restart-policy-and-rules>). Spark's
//! driver runs once: it must not start again beside its own traces.

use k8s_openapi::api::core::v1::{Container, Pod};

const ONCE: &str = "a driver runs once in its pod: leave it out, and ask for retries of the submission";

/// Checks the containers of a template, of which the one at `driver` becomes the driver's.
///
/// # Errors
/// The path of the first field that could restart the driver's container, and what to do. Other containers may have a policy and
/// rules of their own, as sidecars have, but no rule that restarts all containers.
pub(super) fn check(pod: &Pod, driver: usize) -> Result<(), String> {
    let Some(spec) = &pod.spec else { return Ok(()) };
    let init = spec.init_containers.iter().flatten().enumerate();
    let init = init.map(|(index, container)| ("initContainers", index, container, false));
    let main = spec.containers.iter().enumerate();
    let main = main.map(|(index, container)| ("containers", index, container, index == driver));
    init.chain(main).try_for_each(|(list, index, container, is_driver)| match fault(container, is_driver) {
        Some((field, reason)) => Err(format!("spec.{list}[{index}].{field}: {reason}.")),
        None => Ok(()),
    })
}

/// Returns the field of a container that could restart the driver's, and the reason against it.
fn fault(container: &Container, is_driver: bool) -> Option<(String, String)> {
    let rules = container.restart_policy_rules.as_deref().unwrap_or_default();
    if is_driver {
        let policy = container.restart_policy.as_deref().filter(|policy| *policy != "Never");
        let field = policy.map(|_| "restartPolicy").or_else(|| (!rules.is_empty()).then_some("restartPolicyRules"));
        return field.map(|field| (field.to_owned(), ONCE.to_owned()));
    }
    let at = rules.iter().position(|rule| rule.action != "Restart")?;
    let reason = format!("its only action is Restart, for this container alone, because {ONCE}");
    Some((format!("restartPolicyRules[{at}].action"), reason))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the path of the refused field of a pod whose second container is the driver's.
    fn refused(list: &str, index: usize, fields: &Value) -> Option<String> {
        let mut pod = json!({"spec": {
            "containers": [{"name": "sidecar"}, {"name": "driver"}],
            "initContainers": [{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}],
        }});
        pod["spec"][list][index].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let reason = check(&serde_json::from_value(pod).unwrap(), 1).err()?;
        let (path, text) = reason.split_once(": ").unwrap();
        assert!(text.contains("a driver runs once"), "{text}");
        Some(path.to_owned())
    }

    #[test]
    fn nothing_in_a_template_restarts_the_driver() {
        let rule = |action: &str| {
            let codes = json!({"operator": "In", "values": [42]});
            json!({"restartPolicy": "Never", "restartPolicyRules": [{"action": action, "exitCodes": codes}]})
        };
        for policy in ["Always", "OnFailure"] {
            let policy = json!({ "restartPolicy": policy });
            assert_eq!(refused("containers", 1, &policy).as_deref(), Some("spec.containers[1].restartPolicy"));
            assert_eq!(refused("containers", 0, &policy), None);
            assert_eq!(refused("initContainers", 1, &policy), None);
        }
        for action in ["Restart", "RestartAllContainers"] {
            let path = refused("containers", 1, &rule(action));
            assert_eq!(path.as_deref(), Some("spec.containers[1].restartPolicyRules"), "{action}");
        }
        for (list, index) in [("containers", 0), ("initContainers", 0), ("initContainers", 1)] {
            assert_eq!(refused(list, index, &rule("Restart")), None);
            let path = refused(list, index, &rule("RestartAllContainers"));
            assert_eq!(path, Some(format!("spec.{list}[{index}].restartPolicyRules[0].action")));
        }
        assert_eq!(refused("containers", 1, &json!({"restartPolicy": "Never"})), None);
        assert_eq!(refused("containers", 1, &json!({"restartPolicyRules": []})), None);
    }
}
