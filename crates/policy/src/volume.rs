//! The words of Kubernetes for volumes, and paths of nodes.

/// The types of volumes that Kubernetes has, as the fields of a volume name them.
pub(crate) const TYPES: &[&str] = &[
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
];

/// The sources that projected volumes may have in Kubernetes.
pub const PROJECTED_SOURCES: &[&str] =
    &["clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken"];

/// Returns an absolute path without empty and `.` segments. `None` for a relative path and one with `..`.
pub(crate) fn normal_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix('/')?;
    let mut normal = String::new();
    for segment in rest.split('/') {
        match segment {
            "" | "." => {}
            ".." => return None,
            segment => {
                normal.push('/');
                normal.push_str(segment);
            }
        }
    }
    Some(if normal.is_empty() { "/".to_owned() } else { normal })
}

/// Returns whether a path is a directory or below it. Both are in their normal form.
pub(crate) fn is_below(path: &str, prefix: &str) -> bool {
    prefix == "/" || path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_node_is_compared_in_its_normal_form() {
        assert_eq!(normal_path("//data/./x/").as_deref(), Some("/data/x"));
        assert_eq!(normal_path("/").as_deref(), Some("/"));
        assert_eq!(normal_path("/data/../etc"), None);
        assert_eq!(normal_path("data"), None);
        assert!(is_below("/data/x", "/data") && is_below("/data", "/data") && is_below("/x", "/"));
        assert!(!is_below("/database", "/data"));
    }
}
