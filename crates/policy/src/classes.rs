//! The class of each of Spark's properties: who may set it, and which rule judges its effect.
//!
//! The driver is the tenant's own code, so the classes are no boundary around it: they keep a request from changing what the rules
//! for pods assume, and from loading code of its own into Spark by mistake or by a template that was copied.

use std::{collections::HashMap, sync::LazyLock};

/// The class of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Any request may set it to any value.
    Free,
    /// Any request may set it; the rule of this name judges its effect.
    Ruled(&'static str),
    /// Only an operator's default may set it, unless the policy allows it by `properties.allow`.
    Operator,
    /// Credentials for the Kubernetes API: the rule `credentials`.
    Credentials,
    /// No one may set it, for this reason.
    Forbidden(&'static str),
    /// A key below `spark.kubernetes.` that isn't in the table.
    Unknown,
}

use Class::{Credentials, Forbidden, Free, Operator, Ruled};

/// Keys, and families with a dot at their end, in sections as in `docs/reference/properties.md`. Of several families the longest counts. A
/// key that isn't below `spark.kubernetes.` and isn't listed is free.
const TABLE: [(Class, &[&str]); 23] = [
    (
        Free,
        &[
            "spark.app.",
            "spark.connect.grpc.binding.port",
            "spark.blockManager.port",
            "spark.driver.blockManager.port",
            "spark.driver.host",
            "spark.driver.port",
            "spark.driver.supervise",
            "spark.cores.max",
            "spark.home",
            "spark.kerberos.keytab",
            "spark.kerberos.principal",
            "spark.jars.excludes",
            "spark.jars.ivy",
            "spark.local.dir",
            "spark.master",
            "spark.pyspark.driver.python",
            "spark.pyspark.python",
            "spark.sparkgate.",
            "spark.submit.deployMode",
            "spark.submit.proxyUser.allowCustomClasspathInClusterMode",
            "spark.ui.port",
        ],
    ),
    // Judged in the driver's pod, and in the pod of executors as the driver will create it.
    (
        Ruled("images"),
        &[
            "spark.kubernetes.container.image",
            "spark.kubernetes.driver.container.image",
            "spark.kubernetes.executor.container.image",
        ],
    ),
    (
        Ruled("serviceAccounts"),
        &[
            "spark.kubernetes.authenticate.driver.serviceAccountName",
            "spark.kubernetes.authenticate.executor.serviceAccountName",
            "spark.kubernetes.authenticate.serviceAccountName",
        ],
    ),
    (Credentials, &["spark.kubernetes.authenticate."]),
    (Ruled("volumes"), &["spark.kubernetes.driver.volumes.", "spark.kubernetes.executor.volumes."]),
    (
        Ruled("secrets"),
        &[
            "spark.kubernetes.container.image.pullSecrets",
            "spark.kubernetes.driver.secretKeyRef.",
            "spark.kubernetes.driver.secrets.",
            "spark.kubernetes.executor.secretKeyRef.",
            "spark.kubernetes.executor.secrets.",
            "spark.kubernetes.kerberos.tokenSecret.itemKey",
            "spark.kubernetes.kerberos.tokenSecret.name",
        ],
    ),
    (
        Ruled("configMaps"),
        &[
            "spark.kubernetes.executor.hadoopConfigMapName",
            "spark.kubernetes.hadoop.configMapName",
            "spark.kubernetes.kerberos.krb5.configMapName",
            "spark.kubernetes.kerberos.krb5.path",
        ],
    ),
    (
        Ruled("nodeSelectors"),
        &[
            "spark.kubernetes.driver.node.selector.",
            "spark.kubernetes.executor.node.selector.",
            "spark.kubernetes.node.selector.",
        ],
    ),
    (
        Ruled("schedulers"),
        &[
            "spark.kubernetes.driver.scheduler.name",
            "spark.kubernetes.executor.scheduler.name",
            "spark.kubernetes.scheduler.name",
        ],
    ),
    (
        Ruled("queues"),
        &[
            "spark.kubernetes.scheduler.volcano.podGroupTemplateFile",
            "spark.kubernetes.scheduler.volcano.podGroupTemplateJson",
        ],
    ),
    (
        Ruled("limits"),
        &[
            "spark.driver.cores",
            "spark.driver.memory",
            "spark.driver.memoryOverhead",
            "spark.driver.memoryOverheadFactor",
            "spark.driver.minMemoryOverhead",
            "spark.driver.resource.",
            "spark.dynamicAllocation.enabled",
            "spark.dynamicAllocation.maxExecutors",
            "spark.executor.cores",
            "spark.executor.instances",
            "spark.executor.memory",
            "spark.executor.memoryOverhead",
            "spark.executor.memoryOverheadFactor",
            "spark.executor.minMemoryOverhead",
            "spark.executor.pyspark.memory",
            "spark.executor.resource.",
            "spark.kubernetes.driver.limit.cores",
            "spark.kubernetes.driver.request.cores",
            "spark.kubernetes.executor.limit.cores",
            "spark.kubernetes.executor.request.cores",
            "spark.kubernetes.executor.terminationGracePeriodSeconds",
            "spark.kubernetes.memoryOverheadFactor",
            "spark.memory.offHeap.enabled",
            "spark.memory.offHeap.size",
            "spark.streaming.dynamicAllocation.enabled",
            "spark.streaming.dynamicAllocation.maxExecutors",
            "spark.yarn.executor.memoryOverhead",
        ],
    ),
    (
        Ruled("labels"),
        &[
            "spark.kubernetes.driver.label.",
            "spark.kubernetes.driver.service.label.",
            "spark.kubernetes.executor.decommissionLabel",
            "spark.kubernetes.executor.decommissionLabelValue",
            "spark.kubernetes.executor.label.",
        ],
    ),
    (
        Ruled("annotations"),
        &[
            "spark.kubernetes.driver.annotation.",
            "spark.kubernetes.driver.service.annotation.",
            "spark.kubernetes.executor.annotation.",
        ],
    ),
    (
        Ruled("podSecurity"),
        &[
            "spark.kubernetes.driver.securityContext.allowPrivilegeEscalation",
            "spark.kubernetes.executor.securityContext.allowPrivilegeEscalation",
            "spark.kubernetes.securityContext.allowPrivilegeEscalation",
        ],
    ),
    (
        Ruled("resources"),
        &["spark.archives", "spark.eventLog.dir", "spark.files", "spark.jars", "spark.submit.pyFiles"],
    ),
    (Ruled("packages"), &["spark.jars.ivySettings", "spark.jars.packages", "spark.jars.repositories"]),
    // Judged as a whole: the pod of the template.
    (
        Ruled("structure"),
        &[
            "spark.kubernetes.driver.podTemplateContainerName",
            "spark.kubernetes.driver.podTemplateFile",
            "spark.kubernetes.executor.podTemplateContainerName",
            "spark.kubernetes.executor.podTemplateFile",
            "spark.kubernetes.namespace",
        ],
    ),
    // Variables: their values concern only the tenant's own processes.
    (Free, &["spark.executorEnv.", "spark.kubernetes.driverEnv."]),
    // They change names, times and counts within the limits, or only how spark-submit itself works.
    (
        Free,
        &[
            "spark.kubernetes.allocation.batch.delay",
            "spark.kubernetes.allocation.batch.size",
            "spark.kubernetes.allocation.driver.readinessTimeout",
            "spark.kubernetes.allocation.executor.timeout",
            "spark.kubernetes.allocation.maxPendingPods",
            "spark.kubernetes.allocation.maxPendingPodsPerRp",
            "spark.kubernetes.allocation.maximum",
            "spark.kubernetes.allocation.recoveryMode.enabled",
            "spark.kubernetes.appKillPodDeletionGracePeriod",
            "spark.kubernetes.configMap.maxSize",
            "spark.kubernetes.container.image.pullPolicy",
            "spark.kubernetes.driver.annotateExitException",
            "spark.kubernetes.driver.connectionTimeout",
            "spark.kubernetes.driver.ownPersistentVolumeClaim",
            "spark.kubernetes.driver.pod.featureSteps",
            "spark.kubernetes.driver.pod.name",
            "spark.kubernetes.driver.requestTimeout",
            "spark.kubernetes.driver.resourceNamePrefix",
            "spark.kubernetes.driver.reusePersistentVolumeClaim",
            "spark.kubernetes.driver.service.deleteOnTermination",
            "spark.kubernetes.driver.service.ipFamilies",
            "spark.kubernetes.driver.service.ipFamilyPolicy",
            "spark.kubernetes.driver.service.publishNotReadyAddresses",
            "spark.kubernetes.driver.waitToReusePersistentVolumeClaim",
            "spark.kubernetes.dynamicAllocation.deleteGracePeriod",
            "spark.kubernetes.executor.apiPollingInterval",
            "spark.kubernetes.executor.checkAllContainers",
            "spark.kubernetes.executor.deleteOnTermination",
            "spark.kubernetes.executor.deletedExecutorsCacheTimeout",
            "spark.kubernetes.executor.disableConfigMap",
            "spark.kubernetes.executor.enableApiPolling",
            "spark.kubernetes.executor.enableApiWatcher",
            "spark.kubernetes.executor.enablePollingWithResourceVersion",
            "spark.kubernetes.executor.eventProcessingInterval",
            "spark.kubernetes.executor.minTasksPerExecutorBeforeRolling",
            "spark.kubernetes.executor.missingPodDetectDelta",
            "spark.kubernetes.executor.podDeletionCost",
            "spark.kubernetes.executor.podNamePrefix",
            "spark.kubernetes.executor.rollInterval",
            "spark.kubernetes.executor.rollPolicy",
            "spark.kubernetes.executor.useDriverPodIP",
            "spark.kubernetes.executorSnapshotsSubscribersShutdownGracePeriod",
            "spark.kubernetes.file.upload.path",
            "spark.kubernetes.jars.avoidDownloadSchemes",
            "spark.kubernetes.legacy.useReadWriteOnceAccessMode",
            "spark.kubernetes.local.dirs.tmpfs",
            "spark.kubernetes.pyspark.pythonVersion",
            "spark.kubernetes.report.interval",
            "spark.kubernetes.resource.type",
            "spark.kubernetes.setSubmitTimeInDriver",
            "spark.kubernetes.submission.connectionTimeout",
            "spark.kubernetes.submission.requestTimeout",
            "spark.kubernetes.submission.waitAppCompletion",
            "spark.kubernetes.submitInDriver",
        ],
    ),
    // They change which executors the driver creates, and how, beyond what the policy derives.
    (
        Operator,
        &[
            "spark.kubernetes.allocation.pods.allocator",
            "spark.kubernetes.context",
            "spark.kubernetes.decommission.script",
            "spark.kubernetes.driver.master",
            "spark.kubernetes.driver.pod.excludedFeatureSteps",
            "spark.kubernetes.executor.pod.excludedFeatureSteps",
            "spark.kubernetes.executor.pod.featureSteps",
            "spark.kubernetes.executor.pvc.resizeFactor",
            "spark.kubernetes.executor.pvc.resizeInterval",
            "spark.kubernetes.executor.pvc.resizeThreshold",
            "spark.kubernetes.executor.resizeFactor",
            "spark.kubernetes.executor.resizeInterval",
            "spark.kubernetes.executor.resizeThreshold",
            "spark.kubernetes.trust.certificates",
        ],
    ),
    // They load code into Spark's own processes.
    (
        Operator,
        &[
            "spark.driver.defaultJavaOptions",
            "spark.driver.extraClassPath",
            "spark.driver.extraJavaOptions",
            "spark.driver.extraLibraryPath",
            "spark.executor.defaultJavaOptions",
            "spark.executor.extraClassPath",
            "spark.executor.extraJavaOptions",
            "spark.executor.extraLibraryPath",
            "spark.extraListeners",
            "spark.plugins",
            "spark.plugins.defaultList",
            "spark.sql.extensions",
            "spark.sql.queryExecutionListeners",
            "spark.sql.streaming.streamingQueryListeners",
            "spark.ui.filters",
        ],
    ),
    // They protect the application's pages, its log and its traffic.
    (
        Operator,
        &[
            "spark.acls.",
            "spark.admin.acls",
            "spark.admin.acls.groups",
            "spark.authenticate",
            "spark.authenticate.",
            "spark.modify.acls",
            "spark.modify.acls.groups",
            "spark.network.crypto.",
            "spark.redaction.",
            "spark.sql.redaction.",
            "spark.ui.view.acls",
            "spark.ui.view.acls.groups",
        ],
    ),
    (Forbidden("Spark refuses it in a cluster"), &["spark.driver.bindAddress", "spark.remote"]),
];

struct Index {
    keys: HashMap<&'static str, Class>,
    /// Families, the longest first.
    families: Vec<(&'static str, Class)>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let rows = TABLE.iter().flat_map(|(class, keys)| keys.iter().map(|key| (*key, *class)));
    let (mut families, keys): (Vec<_>, Vec<_>) = rows.partition(|(key, _)| key.ends_with('.'));
    families.sort_by_key(|(family, _)| std::cmp::Reverse(family.len()));
    Index { keys: keys.into_iter().collect(), families }
});

/// Returns the class of a property.
pub(crate) fn class_of(key: &str) -> Class {
    if let Some(class) = INDEX.keys.get(key) {
        return *class;
    }
    match INDEX.families.iter().find(|(family, _)| key.starts_with(family)) {
        Some((_, class)) => *class,
        None if key.starts_with("spark.kubernetes.") => Class::Unknown,
        None => Free,
    }
}

/// Returns whether the table has a row for a key or a family, in these letters.
#[cfg(test)]
pub(crate) fn has_row(key: &str) -> bool {
    INDEX.keys.contains_key(key) || INDEX.families.iter().any(|(family, _)| *family == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_of_spark_has_a_class() {
        let keys = sparkgate_spark::keys::KEYS.iter().flat_map(|section| section.keys);
        let missing: Vec<&str> = keys
            .map(|row| row.key)
            .filter(|key| !has_row(key) && !INDEX.families.iter().any(|(family, _)| key.starts_with(family)))
            .collect();
        assert!(missing.is_empty(), "give these keys a class: {missing:#?}");
    }

    #[test]
    fn each_row_is_unique() {
        let mut keys: Vec<&str> = TABLE.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn each_ruled_key_below_kubernetes_is_one_that_spark_knows() {
        for (_, keys) in TABLE {
            for key in keys.iter().filter(|key| **key != "spark.kubernetes.authenticate.serviceAccountName") {
                assert!(sparkgate_spark::keys::is_known(key), "{key} is misspelt");
            }
        }
    }

    #[test]
    fn an_unknown_key_below_kubernetes_has_no_class() {
        assert_eq!(class_of("spark.kubernetes.executor.container.image "), Class::Unknown);
        assert_eq!(class_of("spark.kubernetes.Driver.label.a"), Class::Unknown);
        assert_eq!(class_of("spark.kubernetes.driver.volumes.hostPath.a.mount.path"), Ruled("volumes"));
        assert_eq!(class_of("spark.kubernetes.authenticate.caCertFile"), Credentials);
        assert_eq!(class_of("spark.sql.shuffle.partitions"), Free);
    }
}
