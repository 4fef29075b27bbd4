//! `spark.master`: always a Kubernetes one in the end.

use crate::spark::Refusal;

const KEY: &str = "spark.master";
const PREFIX: &str = "k8s://";
/// Where a driver finds the API server from inside the cluster.
const IN_CLUSTER: &str = "k8s://https://kubernetes.default.svc";

/// Normalises the master as `Utils.checkAndGetK8sMasterUrl` does. Clients of a standalone master name that master
/// (or none): they get the cluster's own address. The driver needs only the prefix.
pub(super) fn kubernetes(master: Option<&str>) -> Result<String, Refusal> {
    let Some(master) = master.filter(|master| !master.starts_with("spark://")) else {
        return Ok(IN_CLUSTER.to_owned());
    };
    let Some(url) = master.strip_prefix(PREFIX) else {
        return Err(Refusal::property(
            KEY,
            format!(
                "Drivers run on Kubernetes, not on `{master}`. Leave the master out, or give k8s://https://host:port."
            ),
        ));
    };
    match url.split_once("://") {
        None => Ok(format!("{PREFIX}https://{url}")),
        Some(("https" | "http", _)) => Ok(master.to_owned()),
        Some((scheme, _)) => Err(Refusal::property(KEY, format!("Invalid Kubernetes master scheme: {scheme}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubernetes_master_gets_a_scheme_and_a_standalone_one_the_clusters_address() {
        let normal = |master| kubernetes(master).unwrap();
        assert_eq!(normal(Some("k8s://host:6443")), "k8s://https://host:6443");
        assert_eq!(normal(Some("k8s://http://host:80")), "k8s://http://host:80");
        assert_eq!(normal(Some("spark://gateway:6066")), IN_CLUSTER);
        assert_eq!(normal(None), IN_CLUSTER);
    }

    #[test]
    fn any_other_master_is_refused() {
        for master in ["yarn", "local[2]", "mesos://m:5050", "k8s", ""] {
            assert_eq!(kubernetes(Some(master)).unwrap_err().field, "sparkProperties[\"spark.master\"]");
        }
        assert!(kubernetes(Some("k8s://ftp://h")).unwrap_err().reason.ends_with("scheme: ftp"));
    }
}
