//! What each of Spark's keys can be used for: values that break the policy of `world`, and values that don't.
//!
//! Each key of the table `sparkgate::spark::keys` must occur here, so that a new key without an attempt fails.

use sparkgate::spark::keys::KEYS;

/// What an attempt leads to, if the release has all of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leads {
    /// To a pod, of the driver or an executor, that breaks this rule: the policy and the cluster see it.
    ToPod(&'static str),
    /// To something else that breaks this rule, which only the gateway sees: a property, an address, a count, another object.
    Beside(&'static str),
    /// To a request that spark-submit and the gateway refuse themselves.
    Nowhere,
    /// To a driver within the policy.
    ToPermitted,
}

use Leads::{Beside, Nowhere, ToPermitted, ToPod};

type Properties = &'static [(&'static str, &'static str)];

/// Keys with a value of this family's prefix.
pub(crate) const ATTEMPTS: &[(Leads, Properties)] = &[
    // Spark's core.
    (ToPermitted, &[("spark.app.submitTime", "1700000000000")]),
    (ToPermitted, &[("spark.app.name", "a\nspark.plugins=org.example.Evil")]),
    (ToPermitted, &[("spark.app.name", "a\\\nspark.plugins=org.example.Evil\u{2028}")]),
    (ToPod("limits"), &[("spark.driver.cores", "64")]),
    (ToPermitted, &[("spark.driver.cores", "2")]),
    (ToPod("limits"), &[("spark.driver.memory", "512g")]),
    (ToPermitted, &[("spark.driver.memory", "2g")]),
    (ToPod("limits"), &[("spark.driver.memoryOverhead", "512g")]),
    (ToPod("limits"), &[("spark.driver.memoryOverheadFactor", "500")]),
    (ToPod("limits"), &[("spark.driver.minMemoryOverhead", "512g")]),
    (ToPod("limits"), &[("spark.driver.resource.gpu.amount", "8"), ("spark.driver.resource.gpu.vendor", "nvidia.com")]),
    (ToPermitted, &[("spark.driver.port", "7078")]),
    (ToPermitted, &[("spark.driver.blockManager.port", "7079")]),
    (ToPermitted, &[("spark.blockManager.port", "7079")]),
    (ToPermitted, &[("spark.ui.port", "4040")]),
    (ToPermitted, &[("spark.connect.grpc.binding.port", "15002")]),
    (ToPermitted, &[("spark.local.dir", "/scratch/a,/scratch/b")]),
    (Beside("resources"), &[("spark.jars", "https://evil.example.org/a.jar")]),
    (Beside("resources"), &[("spark.jars", "s3a://team/../other/a.jar")]),
    (Beside("resources"), &[("spark.jars", "s3a://team/a.jar,s3a://other/b.jar")]),
    (ToPermitted, &[("spark.jars", "s3a://team/a.jar")]),
    (Beside("resources"), &[("spark.files", "ftp://evil.example.org/a")]),
    (Beside("resources"), &[("spark.files", "s3a://team/%252e%252e/%252e%252e/other")]),
    (Beside("resources"), &[("spark.archives", "hdfs://other/a.zip#b")]),
    (Beside("resources"), &[("spark.submit.pyFiles", "https://evil.example.org/a.py")]),
    (ToPermitted, &[("spark.submit.pyFiles", "s3a://team/a.py")]),
    (Beside("resources"), &[("spark.eventLog.dir", "s3a://other/logs")]),
    (ToPermitted, &[("spark.pyspark.python", "/usr/bin/python3")]),
    (ToPermitted, &[("spark.pyspark.driver.python", "/usr/bin/python3")]),
    (
        ToPermitted,
        &[("spark.kerberos.keytab", "local:///opt/team.keytab"), ("spark.kerberos.principal", "team@EXAMPLE.ORG")],
    ),
    (Beside("packages"), &[("spark.jars.packages", "org.example:evil:1")]),
    (ToPermitted, &[("spark.jars.excludes", "org.example:evil")]),
    (Beside("packages"), &[("spark.jars.repositories", "https://evil.example.org/maven")]),
    (ToPermitted, &[("spark.jars.ivy", "/tmp/ivy")]),
    (Beside("packages"), &[("spark.jars.ivySettings", "/opt/ivy.xml")]),
    (Beside("properties"), &[("spark.driver.extraJavaOptions", "-javaagent:/tmp/evil.jar")]),
    (Beside("properties"), &[("spark.driver.extraClassPath", "/tmp/evil.jar")]),
    (Beside("properties"), &[("spark.driver.extraLibraryPath", "/tmp")]),
    (Beside("properties"), &[("spark.plugins", "org.example.Evil")]),
    (Beside("properties"), &[("spark.extraListeners", "org.example.Evil")]),
    (Beside("properties"), &[("spark.ui.filters", "org.example.Evil")]),
    (Beside("properties"), &[("spark.redaction.regex", "^$")]),
    (Beside("properties"), &[("spark.authenticate", "false")]),
    (Beside("inlineSecrets"), &[("spark.hadoop.fs.s3a.secret.key", "abcdef")]),
    (Beside("limits"), &[("spark.executor.instances", "1000")]),
    (Beside("limits"), &[("spark.executor.instances", " 1000 ")]),
    (ToPermitted, &[("spark.executor.instances", "4")]),
    (ToPod("limits"), &[("spark.executor.cores", "64")]),
    (ToPermitted, &[("spark.executor.cores", "2")]),
    (ToPod("limits"), &[("spark.executor.memory", "512g")]),
    (ToPod("limits"), &[("spark.executor.memory", " 512G ")]),
    (ToPermitted, &[("spark.executor.memory", "2g")]),
    (ToPod("limits"), &[("spark.executor.memoryOverhead", "512g")]),
    (ToPod("limits"), &[("spark.executor.memoryOverheadFactor", "500")]),
    (
        ToPod("limits"),
        &[("spark.executor.resource.gpu.amount", "8"), ("spark.executor.resource.gpu.vendor", "nvidia.com")],
    ),
    (ToPod("limits"), &[("spark.memory.offHeap.enabled", "true"), ("spark.memory.offHeap.size", "512g")]),
    (Beside("limits"), &[("spark.dynamicAllocation.enabled", "true")]),
    (
        Beside("limits"),
        &[("spark.dynamicAllocation.enabled", "TRUE"), ("spark.dynamicAllocation.maxExecutors", "1000")],
    ),
    (Beside("limits"), &[("spark.streaming.dynamicAllocation.enabled", "true")]),
    (ToPermitted, &[("spark.dynamicAllocation.enabled", "true"), ("spark.dynamicAllocation.maxExecutors", "4")]),
    (ToPermitted, &[("spark.cores.max", "8")]),
    (ToPermitted, &[("spark.driver.supervise", "false")]),
    (ToPermitted, &[("spark.driver.host", "evil.example.org")]),
    (Nowhere, &[("spark.driver.bindAddress", "0.0.0.0")]),
    (Nowhere, &[("spark.remote", "sc://evil.example.org")]),
    // The driver.
    (Nowhere, &[("spark.kubernetes.namespace", "kube-system")]),
    (Nowhere, &[("spark.kubernetes.namespace", "default")]),
    (ToPod("images"), &[("spark.kubernetes.container.image", "evil.example.org/miner:1")]),
    (ToPod("images"), &[("spark.kubernetes.container.image", "registry.example.org.evil.example/team/spark:1")]),
    (ToPod("images"), &[("spark.kubernetes.container.image", "registry.example.org/team-evil/spark:1")]),
    (ToPod("images"), &[("spark.kubernetes.container.image", "evil/registry.example.org/team/spark:1")]),
    (ToPod("images"), &[("spark.kubernetes.container.image", "registry.example.org/team/../evil/spark:1")]),
    (ToPod("images"), &[("spark.kubernetes.container.image", "{{SPARK_VERSION}}")]),
    (ToPod("images"), &[("spark.kubernetes.driver.container.image", "miner")]),
    (ToPermitted, &[("spark.kubernetes.driver.container.image", "registry.example.org/team/other:2")]),
    (ToPod("images"), &[("spark.kubernetes.executor.container.image", "evil.example.org/miner:1")]),
    (ToPod("images"), &[("spark.kubernetes.executor.container.image", " evil.example.org/miner:1 ")]),
    (Beside("images"), &[("spark.kubernetes.executor.container.image", "${spark.image}"), ("spark.image", "miner")]),
    (ToPermitted, &[("spark.kubernetes.executor.container.image", "registry.example.org/team/other:2")]),
    (ToPermitted, &[("spark.kubernetes.container.image.pullPolicy", "Always")]),
    (ToPod("secrets"), &[("spark.kubernetes.container.image.pullSecrets", "team-pull,root")]),
    (ToPermitted, &[("spark.kubernetes.container.image.pullSecrets", "team-pull")]),
    (ToPermitted, &[("spark.kubernetes.driver.pod.name", "driver-of-case-{case}")]),
    (ToPermitted, &[("spark.kubernetes.driver.resourceNamePrefix", "kube-root-ca")]),
    (ToPod("limits"), &[("spark.kubernetes.driver.request.cores", "64")]),
    (ToPod("limits"), &[("spark.kubernetes.driver.limit.cores", "64")]),
    (ToPod("limits"), &[("spark.kubernetes.memoryOverheadFactor", "500")]),
    (ToPod("schedulers"), &[("spark.kubernetes.scheduler.name", "evil-scheduler")]),
    (ToPermitted, &[("spark.kubernetes.scheduler.name", "team-scheduler")]),
    (ToPod("schedulers"), &[("spark.kubernetes.driver.scheduler.name", "evil-scheduler")]),
    (ToPod("podSecurity"), &[("spark.kubernetes.driver.podTemplateFile", "host-network.yaml")]),
    (ToPermitted, &[("spark.kubernetes.driver.podTemplateFile", "plain.yaml")]),
    (
        ToPod("podSecurity"),
        &[
            ("spark.kubernetes.driver.podTemplateFile", "two-containers.yaml"),
            ("spark.kubernetes.driver.podTemplateContainerName", "second"),
        ],
    ),
    (
        Beside("properties"),
        &[(
            "spark.kubernetes.driver.pod.excludedFeatureSteps",
            "org.apache.spark.deploy.k8s.features.BasicDriverFeatureStep",
        )],
    ),
    (Nowhere, &[("spark.kubernetes.driver.pod.featureSteps", "org.example.Evil")]),
    (
        Beside("queues"),
        &[
            ("spark.kubernetes.driver.pod.featureSteps", "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep"),
            ("spark.kubernetes.scheduler.volcano.podGroupTemplateJson", r#"{"spec":{"queue":"root"}}"#),
        ],
    ),
    (
        Beside("queues"),
        &[
            ("spark.kubernetes.driver.pod.featureSteps", "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep"),
            ("spark.kubernetes.scheduler.volcano.podGroupTemplateFile", "pod-group.yaml"),
        ],
    ),
    (ToPermitted, &[("spark.kubernetes.securityContext.allowPrivilegeEscalation", "true")]),
    (ToPermitted, &[("spark.kubernetes.driver.securityContext.allowPrivilegeEscalation", "true")]),
    (ToPermitted, &[("spark.kubernetes.executor.securityContext.allowPrivilegeEscalation", "true")]),
    (ToPermitted, &[("spark.kubernetes.driver.service.ipFamilyPolicy", "SingleStack")]),
    (ToPermitted, &[("spark.kubernetes.driver.service.ipFamilies", "IPv4")]),
    (ToPermitted, &[("spark.kubernetes.driver.service.publishNotReadyAddresses", "true")]),
    (ToPermitted, &[("spark.kubernetes.driver.service.deleteOnTermination", "false")]),
    (ToPermitted, &[("spark.kubernetes.local.dirs.tmpfs", "true")]),
    (ToPermitted, &[("spark.kubernetes.configMap.maxSize", "1000000")]),
    (ToPermitted, &[("spark.kubernetes.legacy.useReadWriteOnceAccessMode", "true")]),
    (ToPod("serviceAccounts"), &[("spark.kubernetes.authenticate.driver.serviceAccountName", "admin")]),
    (ToPod("serviceAccounts"), &[("spark.kubernetes.authenticate.driver.serviceAccountName", "default")]),
    (ToPod("configMaps"), &[("spark.kubernetes.hadoop.configMapName", "root")]),
    (ToPermitted, &[("spark.kubernetes.hadoop.configMapName", "team-hadoop")]),
    (ToPermitted, &[("spark.kubernetes.kerberos.krb5.path", "krb5.conf")]),
    (ToPod("configMaps"), &[("spark.kubernetes.kerberos.krb5.configMapName", "root")]),
    (
        ToPod("secrets"),
        &[
            ("spark.kubernetes.kerberos.tokenSecret.name", "root"),
            ("spark.kubernetes.kerberos.tokenSecret.itemKey", "k"),
        ],
    ),
    (
        ToPermitted,
        &[
            ("spark.kubernetes.kerberos.tokenSecret.name", "team-tokens"),
            ("spark.kubernetes.kerberos.tokenSecret.itemKey", "k"),
        ],
    ),
    (ToPod("podSecurity"), &[("spark.kubernetes.executor.podTemplateFile", "host-network.yaml")]),
    (ToPermitted, &[("spark.kubernetes.executor.podTemplateFile", "plain.yaml")]),
    (ToPermitted, &[("spark.kubernetes.resource.type", "java")]),
    (ToPermitted, &[("spark.kubernetes.submitInDriver", "true")]),
    (Beside("properties"), &[("spark.kubernetes.driver.master", "https://evil.example.org")]),
    (ToPermitted, &[("spark.kubernetes.driver.connectionTimeout", "10000")]),
    (ToPermitted, &[("spark.kubernetes.driver.requestTimeout", "10000")]),
    (ToPermitted, &[("spark.kubernetes.driver.annotateExitException", "true")]),
    (ToPermitted, &[("spark.kubernetes.driver.ownPersistentVolumeClaim", "false")]),
    (ToPermitted, &[("spark.kubernetes.driver.reusePersistentVolumeClaim", "false")]),
    (ToPermitted, &[("spark.kubernetes.driver.waitToReusePersistentVolumeClaim", "false")]),
    (ToPermitted, &[("spark.kubernetes.setSubmitTimeInDriver", "true")]),
    (ToPermitted, &[("spark.kubernetes.jars.avoidDownloadSchemes", "s3a")]),
    // Families.
    (ToPod("labels"), &[("spark.kubernetes.driver.label.app", "frontend")]),
    (ToPod("labels"), &[("spark.kubernetes.driver.label.topology.kubernetes.io/zone", "a")]),
    (Beside("labels"), &[("spark.kubernetes.driver.label.sparkgate.dev/submission-id", "driver-20260101000000-0001")]),
    (ToPermitted, &[("spark.kubernetes.driver.label.team", "red")]),
    (ToPod("annotations"), &[("spark.kubernetes.driver.annotation.blocked.example.org/a", "b")]),
    (Beside("annotations"), &[("spark.kubernetes.driver.annotation.sparkgate.dev/identity", "b")]),
    (ToPermitted, &[("spark.kubernetes.driver.annotation.example.org/a", "b")]),
    (Beside("labels"), &[("spark.kubernetes.driver.service.label.app", "frontend")]),
    (ToPermitted, &[("spark.kubernetes.driver.service.label.team", "red")]),
    (
        Beside("annotations"),
        &[("spark.kubernetes.driver.service.annotation.service.beta.kubernetes.io/aws-load-balancer-type", "external")],
    ),
    (ToPod("inlineSecrets"), &[("spark.kubernetes.driverEnv.DB_PASSWORD", "abcdef")]),
    (ToPermitted, &[("spark.kubernetes.driverEnv.MODE", "fast")]),
    (ToPod("secrets"), &[("spark.kubernetes.driver.secrets.root", "/mnt/root")]),
    (ToPermitted, &[("spark.kubernetes.driver.secrets.team-a", "/mnt/a")]),
    (ToPod("secrets"), &[("spark.kubernetes.driver.secretKeyRef.X", "root:key")]),
    (ToPermitted, &[("spark.kubernetes.driver.secretKeyRef.X", "team-a:key")]),
    (
        ToPod("volumes"),
        &[
            ("spark.kubernetes.driver.volumes.hostPath.v.mount.path", "/v"),
            ("spark.kubernetes.driver.volumes.hostPath.v.options.path", "/"),
        ],
    ),
    (
        ToPod("nfsServers"),
        &[
            ("spark.kubernetes.driver.volumes.nfs.v.mount.path", "/v"),
            ("spark.kubernetes.driver.volumes.nfs.v.options.path", "/"),
            ("spark.kubernetes.driver.volumes.nfs.v.options.server", "evil.example.org"),
        ],
    ),
    (
        ToPod("claims"),
        &[
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.mount.path", "/v"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.claimName", "root"),
        ],
    ),
    (
        ToPermitted,
        &[
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.mount.path", "/v"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.claimName", "team-data"),
        ],
    ),
    (
        Beside("storageClasses"),
        &[
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.mount.path", "/v"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.claimName", "OnDemand"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.storageClass", "root"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.sizeLimit", "1Gi"),
        ],
    ),
    (
        Beside("limits"),
        &[
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.mount.path", "/v"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.claimName", "OnDemand"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.storageClass", "standard"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.sizeLimit", "100Ti"),
        ],
    ),
    (
        ToPermitted,
        &[
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.mount.path", "/v"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.claimName", "OnDemand"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.storageClass", "standard"),
            ("spark.kubernetes.driver.volumes.persistentVolumeClaim.v.options.sizeLimit", "1Gi"),
        ],
    ),
    (
        ToPod("limits"),
        &[
            ("spark.kubernetes.driver.volumes.emptyDir.v.mount.path", "/v"),
            ("spark.kubernetes.driver.volumes.emptyDir.v.options.medium", "Memory"),
        ],
    ),
    (ToPod("nodeSelectors"), &[("spark.kubernetes.node.selector.kubernetes.io/hostname", "node-1")]),
    (ToPermitted, &[("spark.kubernetes.node.selector.pool", "team")]),
    (ToPod("nodeSelectors"), &[("spark.kubernetes.driver.node.selector.pool", "root")]),
    (ToPod("nodeSelectors"), &[("spark.kubernetes.executor.node.selector.pool", "root")]),
    (Beside("credentials"), &[("spark.kubernetes.authenticate.driver.oauthToken", "abcdef")]),
    (Nowhere, &[("spark.kubernetes.authenticate.driver.caCertFile", "/etc/passwd")]),
    (Nowhere, &[("spark.kubernetes.authenticate.driver.clientKeyFile", "/etc/passwd")]),
    (Nowhere, &[("spark.kubernetes.authenticate.driver.clientCertFile", "/etc/passwd")]),
    (Beside("credentials"), &[("spark.kubernetes.authenticate.driver.oauthTokenFile", "/etc/passwd")]),
    (Beside("credentials"), &[("spark.kubernetes.authenticate.driver.mounted.oauthTokenFile", "/etc/passwd")]),
    (Beside("credentials"), &[("spark.kubernetes.authenticate.submission.oauthToken", "abcdef")]),
    (Beside("credentials"), &[("spark.kubernetes.authenticate.oauthToken", "abcdef")]),
    (ToPod("labels"), &[("spark.kubernetes.executor.label.app", "frontend")]),
    (ToPermitted, &[("spark.kubernetes.executor.label.team", "red")]),
    (ToPod("annotations"), &[("spark.kubernetes.executor.annotation.blocked.example.org/a", "b")]),
    (ToPermitted, &[("spark.kubernetes.executor.annotation.example.org/a", "b")]),
    (ToPod("secrets"), &[("spark.kubernetes.executor.secrets.root", "/mnt/root")]),
    (ToPermitted, &[("spark.kubernetes.executor.secrets.team-a", "/mnt/a")]),
    (ToPod("secrets"), &[("spark.kubernetes.executor.secretKeyRef.X", "root:key")]),
    (
        ToPod("volumes"),
        &[
            ("spark.kubernetes.executor.volumes.hostPath.v.mount.path", "/v"),
            ("spark.kubernetes.executor.volumes.hostPath.v.options.path", "/var/run"),
        ],
    ),
    (
        ToPod("claims"),
        &[
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.mount.path", "/v"),
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.options.claimName", "root"),
        ],
    ),
    (
        ToPermitted,
        &[
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.mount.path", "/v"),
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.options.claimName", "OnDemand"),
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.options.storageClass", "standard"),
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.options.sizeLimit", "1Gi"),
        ],
    ),
    (
        Beside("storageClasses"),
        &[
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.mount.path", "/v"),
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.options.claimName", "OnDemand"),
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.options.storageClass", "root"),
            ("spark.kubernetes.executor.volumes.persistentVolumeClaim.v.options.sizeLimit", "1Gi"),
        ],
    ),
    (ToPod("inlineSecrets"), &[("spark.executorEnv.API_TOKEN", "abcdef")]),
    (ToPermitted, &[("spark.executorEnv.MODE", "fast")]),
    // Executors.
    (ToPod("limits"), &[("spark.kubernetes.executor.request.cores", "64")]),
    (ToPod("limits"), &[("spark.kubernetes.executor.limit.cores", "64")]),
    (ToPermitted, &[("spark.kubernetes.executor.limit.cores", "2")]),
    (ToPermitted, &[("spark.kubernetes.executor.podNamePrefix", "workers-{case}")]),
    (
        ToPod("podSecurity"),
        &[
            ("spark.kubernetes.executor.podTemplateFile", "two-containers.yaml"),
            ("spark.kubernetes.executor.podTemplateContainerName", "second"),
        ],
    ),
    (ToPod("configMaps"), &[("spark.kubernetes.executor.hadoopConfigMapName", "root")]),
    (ToPod("schedulers"), &[("spark.kubernetes.executor.scheduler.name", "evil-scheduler")]),
    (Beside("properties"), &[("spark.kubernetes.executor.pod.featureSteps", "org.example.Evil")]),
    (
        Beside("properties"),
        &[(
            "spark.kubernetes.executor.pod.excludedFeatureSteps",
            "org.apache.spark.deploy.k8s.features.BasicExecutorFeatureStep",
        )],
    ),
    (ToPod("serviceAccounts"), &[("spark.kubernetes.authenticate.executor.serviceAccountName", "admin")]),
    (ToPermitted, &[("spark.kubernetes.authenticate.executor.serviceAccountName", "spark")]),
    (ToPermitted, &[("spark.kubernetes.executor.disableConfigMap", "true")]),
    (ToPermitted, &[("spark.kubernetes.executor.checkAllContainers", "true")]),
    (ToPermitted, &[("spark.kubernetes.executor.deleteOnTermination", "false")]),
    (ToPod("limits"), &[("spark.kubernetes.executor.terminationGracePeriodSeconds", "100000s")]),
    (ToPermitted, &[("spark.kubernetes.executor.terminationGracePeriodSeconds", "60s")]),
    (ToPermitted, &[("spark.kubernetes.executor.useDriverPodIP", "true")]),
    (ToPermitted, &[("spark.kubernetes.executor.podDeletionCost", "10")]),
    (
        Beside("labels"),
        &[
            ("spark.kubernetes.executor.decommissionLabel", "app"),
            ("spark.kubernetes.executor.decommissionLabelValue", "frontend"),
        ],
    ),
    (
        ToPermitted,
        &[
            ("spark.kubernetes.executor.decommissionLabel", "team"),
            ("spark.kubernetes.executor.decommissionLabelValue", "gone"),
        ],
    ),
    (Beside("properties"), &[("spark.kubernetes.decommission.script", "/tmp/evil.sh")]),
    (ToPermitted, &[("spark.kubernetes.executor.apiPollingInterval", "30s")]),
    (ToPermitted, &[("spark.kubernetes.executor.enableApiPolling", "true")]),
    (ToPermitted, &[("spark.kubernetes.executor.enableApiWatcher", "true")]),
    (ToPermitted, &[("spark.kubernetes.executor.enablePollingWithResourceVersion", "true")]),
    (ToPermitted, &[("spark.kubernetes.executor.eventProcessingInterval", "1s")]),
    (ToPermitted, &[("spark.kubernetes.executor.missingPodDetectDelta", "30s")]),
    (ToPermitted, &[("spark.kubernetes.executor.deletedExecutorsCacheTimeout", "1min")]),
    (ToPermitted, &[("spark.kubernetes.executorSnapshotsSubscribersShutdownGracePeriod", "20s")]),
    (ToPermitted, &[("spark.kubernetes.executor.rollInterval", "0s")]),
    (ToPermitted, &[("spark.kubernetes.executor.rollPolicy", "OUTLIER")]),
    (ToPermitted, &[("spark.kubernetes.executor.minTasksPerExecutorBeforeRolling", "0")]),
    (Beside("properties"), &[("spark.kubernetes.executor.resizeInterval", "1s")]),
    (Beside("properties"), &[("spark.kubernetes.executor.resizeThreshold", "0.5")]),
    (Beside("properties"), &[("spark.kubernetes.executor.resizeFactor", "0.9")]),
    (Beside("properties"), &[("spark.kubernetes.executor.pvc.resizeInterval", "1s")]),
    (Beside("properties"), &[("spark.kubernetes.executor.pvc.resizeThreshold", "0.5")]),
    (Beside("properties"), &[("spark.kubernetes.executor.pvc.resizeFactor", "0.9")]),
    (ToPermitted, &[("spark.kubernetes.allocation.batch.size", "20")]),
    (ToPermitted, &[("spark.kubernetes.allocation.batch.delay", "1s")]),
    (ToPermitted, &[("spark.kubernetes.allocation.executor.timeout", "600s")]),
    (ToPermitted, &[("spark.kubernetes.allocation.driver.readinessTimeout", "1s")]),
    (ToPermitted, &[("spark.kubernetes.allocation.maxPendingPods", "10")]),
    (ToPermitted, &[("spark.kubernetes.allocation.maxPendingPodsPerRp", "10")]),
    (ToPermitted, &[("spark.kubernetes.allocation.maximum", "10")]),
    (Beside("properties"), &[("spark.kubernetes.allocation.pods.allocator", "statefulset")]),
    (ToPermitted, &[("spark.kubernetes.allocation.recoveryMode.enabled", "true")]),
    (ToPermitted, &[("spark.kubernetes.dynamicAllocation.deleteGracePeriod", "5s")]),
    (Beside("properties"), &[("spark.kubernetes.trust.certificates", "true")]),
    // Submitting.
    (Nowhere, &[("spark.master", "local[*]")]),
    (ToPermitted, &[("spark.master", "k8s://https://evil.example.org")]),
    (ToPermitted, &[("spark.submit.deployMode", "client")]),
    (Beside("properties"), &[("spark.kubernetes.context", "evil")]),
    (ToPermitted, &[("spark.kubernetes.file.upload.path", "s3a://team/up")]),
    (ToPermitted, &[("spark.kubernetes.report.interval", "1s")]),
    (ToPermitted, &[("spark.kubernetes.submission.waitAppCompletion", "false")]),
    (ToPermitted, &[("spark.kubernetes.submission.connectionTimeout", "10000")]),
    (ToPermitted, &[("spark.kubernetes.submission.requestTimeout", "10000")]),
    (ToPermitted, &[("spark.kubernetes.appKillPodDeletionGracePeriod", "10")]),
    (ToPermitted, &[("spark.kubernetes.pyspark.pythonVersion", "3")]),
    (ToPermitted, &[("spark.submit.proxyUser.allowCustomClasspathInClusterMode", "true")]),
    (ToPermitted, &[("spark.home", "/etc")]),
    (Nowhere, &[("spark.sparkgate.defaults", "../../etc/passwd")]),
    // Keys of no release.
    (Beside("properties"), &[("spark.kubernetes.executor.hostNetwork", "true")]),
    (Beside("properties"), &[("spark.kubernetes.driver.Container.image", "miner")]),
];

/// Returns the release of the first line that has all keys of an attempt, as `(major, minor)`. Keys that aren't in the table count
/// as those of all lines.
pub(crate) fn since(properties: Properties) -> (u32, u32) {
    let rows = || KEYS.iter().flat_map(|section| section.keys);
    let of = |key: &str| {
        let row = rows().filter(|row| covers(row.key, key)).max_by_key(|row| row.key.len());
        let mut parts = row.map_or("0", |row| row.since).split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    };
    properties.iter().map(|(key, _)| of(key)).max().unwrap_or_default()
}

fn covers(row: &str, key: &str) -> bool {
    row == key || (row.ends_with('.') && key.starts_with(row))
}

#[test]
fn each_key_of_spark_is_tried() {
    let tried = |row: &str| ATTEMPTS.iter().flat_map(|(_, properties)| *properties).any(|(key, _)| covers(row, key));
    let rows = KEYS.iter().flat_map(|section| section.keys);
    let missing: Vec<&str> = rows.map(|row| row.key).filter(|key| !tried(key)).collect();
    assert!(missing.is_empty(), "add an attempt with each of these keys to the corpus: {missing:#?}");
}
