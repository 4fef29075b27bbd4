//! Finds Spark's container in a pod, and its role, by the contract of the Spark image's entrypoint.

use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::fault::Fault;

/// The first argument of a Spark container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Driver,
    Executor,
}

/// Spark's names for its containers, unless a template names them.
const NAMES: [&str; 2] = ["spark-kubernetes-driver", "spark-kubernetes-executor"];

/// Finds Spark's container by its name, or else the first container whose arguments begin with `driver` or `executor`.
pub(super) fn spark_container(spec: &PodSpec) -> Result<(&Container, Role), Fault> {
    let named = spec.containers.iter().filter(|c| NAMES.contains(&c.name.as_str()));
    named.chain(&spec.containers).find_map(|c| Some((c, role(c)?))).ok_or_else(|| {
        Fault::refused(
            "CreateContainerError",
            "the sandbox runs only Spark drivers and executors: no container has arguments that begin with `driver` or `executor`",
        )
    })
}

fn role(container: &Container) -> Option<Role> {
    // A command replaces the image's entrypoint, unless it is the entrypoint itself.
    let entrypoint = container.command.iter().flatten().next_back().is_none_or(|last| last.ends_with("entrypoint.sh"));
    match container.args.iter().flatten().next()?.as_str() {
        "driver" if entrypoint => Some(Role::Driver),
        "executor" if entrypoint => Some(Role::Executor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(name: &str, command: &[&str], args: &[&str]) -> Container {
        let strings = |list: &[&str]| (!list.is_empty()).then(|| list.iter().map(|s| (*s).to_owned()).collect());
        Container { name: name.into(), command: strings(command), args: strings(args), ..Default::default() }
    }

    fn pod(containers: Vec<Container>) -> PodSpec {
        PodSpec { containers, ..Default::default() }
    }

    #[test]
    fn sidecars_are_skipped() {
        let spec = pod(vec![container("log", &[], &["ship"]), container("main", &[], &["driver", "x"])]);
        let (found, role) = spark_container(&spec).unwrap();
        assert_eq!((found.name.as_str(), role), ("main", Role::Driver));
    }

    #[test]
    fn the_name_takes_precedence_over_the_position() {
        let spec =
            pod(vec![container("a", &[], &["driver"]), container("spark-kubernetes-executor", &[], &["executor"])]);
        assert_eq!(spark_container(&spec).unwrap().1, Role::Executor);
    }

    #[test]
    fn other_pods_are_refused() {
        for spec in [
            pod(vec![]),
            pod(vec![container("web", &[], &[])]),
            pod(vec![container("spark-kubernetes-driver", &["sh", "-c"], &["driver"])]),
        ] {
            let fault = spark_container(&spec).unwrap_err();
            assert_eq!(fault.reason(), "CreateContainerError");
        }
    }

    #[test]
    fn the_entrypoint_may_be_given_as_the_command() {
        let spec = pod(vec![container("x", &["/opt/entrypoint.sh"], &["driver"])]);
        assert_eq!(spark_container(&spec).unwrap().1, Role::Driver);
    }
}
