//! `spark.master`, which always ends up as a Kubernetes master.

use crate::{refusal::Refusal, version::SparkVersion};

const KEY: &str = "spark.master";
const PREFIX: &str = "k8s://";
/// The address of the API server from inside the cluster.
const IN_CLUSTER: &str = "k8s://https://kubernetes.default.svc";

/// Normalises the master as `Utils.checkAndGetK8sMasterUrl` does. Clients of a standalone master name that master or none:
/// for them it becomes the cluster's own address. The driver needs only the prefix.
pub(super) fn kubernetes(master: Option<&str>, version: SparkVersion) -> Result<String, Refusal> {
    let Some(master) = master.filter(|master| !master.starts_with("spark://")) else {
        return Ok(IN_CLUSTER.to_owned());
    };
    let Some(url) = master.strip_prefix(PREFIX) else {
        let hint = "Drivers run on Kubernetes: leave the master out, or give k8s://https://host:port.";
        return Err(Refusal::property(KEY, format!("{} {hint}", sparks_reason(master, version))));
    };
    match url.split_once("://") {
        None => Ok(format!("{PREFIX}https://{url}")),
        Some((scheme, _)) if ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            Ok(master.to_owned())
        }
        Some((scheme, _)) => {
            Err(Refusal::property(KEY, format!("Invalid Kubernetes master scheme: {scheme} found in URL: {url}")))
        }
    }
}

/// Returns spark-submit's message for such a master in cluster mode.
fn sparks_reason(master: &str, version: SparkVersion) -> String {
    let knows_mesos = version < SparkVersion::V4_0;
    match master {
        "yarn" => "This gateway has no YARN.".to_owned(),
        local if local.starts_with("local") => {
            "Cluster deploy mode is not compatible with master \"local\".".to_owned()
        }
        k8s if knows_mesos && k8s.starts_with("k8s") => "Kubernetes master URL must start with k8s://.".to_owned(),
        _ => {
            let mesos = if knows_mesos { "mesos, " } else { "" };
            format!("Master must either be yarn or start with spark, {mesos}k8s, or local, not `{master}`.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubernetes_master_gets_a_scheme_and_a_standalone_master_becomes_the_clusters_address() {
        let normal = |master| kubernetes(master, SparkVersion::V4_3).unwrap();
        assert_eq!(normal(Some("k8s://host:6443")), "k8s://https://host:6443");
        assert_eq!(normal(Some("k8s://http://host:80")), "k8s://http://host:80");
        assert_eq!(normal(Some("spark://gateway:6066")), IN_CLUSTER);
        assert_eq!(normal(None), IN_CLUSTER);
    }

    #[test]
    fn any_other_master_is_refused() {
        for master in ["yarn", "local[2]", "mesos://m:5050", "k8s", ""] {
            let refusal = kubernetes(Some(master), SparkVersion::V4_3).unwrap_err();
            assert_eq!(refusal.field, "sparkProperties[\"spark.master\"]");
        }
        let refusal = kubernetes(Some("k8s://ftp://h"), SparkVersion::V4_3).unwrap_err();
        assert!(refusal.reason.ends_with("scheme: ftp found in URL: ftp://h"));
    }
}
