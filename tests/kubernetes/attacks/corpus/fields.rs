//! Fields of a pod that break the policy of `world`, and fields that don't: in a template, or in a pod that a driver creates.

use serde_json::{Value, json};

/// What a field is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Metadata,
    Spec,
    /// Any container.
    Container,
    /// A container beside Spark's own, whose value Spark replaces.
    OtherContainer,
    /// Spark's own container.
    OwnContainer,
    /// The source of a volume that Spark's container mounts.
    Volume,
}

use Place::{Container, Metadata, OtherContainer, OwnContainer, Spec, Volume};

/// The rule for drivers alone.
pub(crate) const RESTARTS: &str = "restarts";

/// Fields that break a rule, in JSON.
pub(crate) const REFUSED: &[(&str, Place, &str)] = &[
    // What runs a driver again. It doesn't concern executors, which their driver counts.
    (RESTARTS, OwnContainer, r#"{"restartPolicy": "Always"}"#),
    (RESTARTS, OwnContainer, r#"{"restartPolicy": "OnFailure"}"#),
    (
        RESTARTS,
        OwnContainer,
        r#"{"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]}"#,
    ),
    (
        RESTARTS,
        Container,
        r#"{"restartPolicy": "Always", "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]}"#,
    ),
    // The level baseline of the Pod Security Standards.
    ("podSecurity", Spec, r#"{"hostNetwork": true}"#),
    ("podSecurity", Spec, r#"{"hostPID": true}"#),
    ("podSecurity", Spec, r#"{"hostIPC": true}"#),
    ("podSecurity", Spec, r#"{"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}}"#),
    ("podSecurity", Spec, r#"{"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}"#),
    ("podSecurity", Spec, r#"{"securityContext": {"seLinuxOptions": {"user": "system_u"}}}"#),
    ("podSecurity", Spec, r#"{"securityContext": {"seLinuxOptions": {"role": "system_r"}}}"#),
    ("podSecurity", Spec, r#"{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}"#),
    ("podSecurity", Spec, r#"{"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}"#),
    ("podSecurity", Spec, r#"{"hostNetwork": true, "securityContext": {"windowsOptions": {"hostProcess": true}}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"privileged": true}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"capabilities": {"add": ["CHOWN", "NET_RAW"]}}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"capabilities": {"add": ["ALL"], "drop": ["ALL"]}}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"procMount": "Unmasked"}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}"#),
    ("podSecurity", Container, r#"{"securityContext": {"windowsOptions": {"hostProcess": true}}}"#),
    ("podSecurity", Container, r#"{"ports": [{"containerPort": 80, "hostPort": 80}]}"#),
    ("podSecurity", Container, r#"{"livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}}"#),
    ("podSecurity", Container, r#"{"readinessProbe": {"tcpSocket": {"host": "169.254.169.254", "port": 80}}}"#),
    ("podSecurity", Container, r#"{"lifecycle": {"postStart": {"httpGet": {"host": "169.254.169.254", "port": 80}}}}"#),
    (
        "podSecurity",
        Metadata,
        r#"{"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}}"#,
    ),
    // What no one may set.
    ("structure", Spec, r#"{"nodeName": "node-1"}"#),
    ("structure", Spec, r#"{"schedulingGates": [{"name": "example.org/hold"}]}"#),
    ("structure", Spec, r#"{"overhead": {"cpu": "1"}}"#),
    ("structure", Spec, r#"{"ephemeralContainers": [{"name": "e", "image": "registry.example.org/team/a:1"}]}"#),
    ("structure", Metadata, r#"{"finalizers": ["example.org/hold"]}"#),
    (
        "structure",
        Metadata,
        r#"{"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "00000000-0000-0000-0000-000000000000"}]}"#,
    ),
    // Where and when a pod runs.
    ("nodeSelectors", Spec, r#"{"nodeSelector": {"pool": "root"}}"#),
    ("nodeSelectors", Spec, r#"{"nodeSelector": {"pool": "team", "kubernetes.io/hostname": "node-1"}}"#),
    ("nodeSelectors", Spec, r#"{"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}}"#),
    (
        "nodeSelectors",
        Spec,
        r#"{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["team", "root"]}]}]}}}}"#,
    ),
    (
        "nodeSelectors",
        Spec,
        r#"{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["team"]}]}]}}}}"#,
    ),
    (
        "nodeSelectors",
        Spec,
        r#"{"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [{"key": "root", "operator": "Exists"}]}}]}}}"#,
    ),
    (
        "structure",
        Spec,
        r#"{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}}}}"#,
    ),
    ("tolerations", Spec, r#"{"tolerations": [{"operator": "Exists"}]}"#),
    (
        "tolerations",
        Spec,
        r#"{"tolerations": [{"key": "pool", "operator": "Exists"}, {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}"#,
    ),
    (
        "tolerations",
        Spec,
        r#"{"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]}"#,
    ),
    ("priorityClasses", Spec, r#"{"priorityClassName": "system-node-critical"}"#),
    ("priorityClasses", Spec, r#"{"priorityClassName": "urgent"}"#),
    ("priorityClasses", Spec, r#"{"priority": 2000001000}"#),
    ("runtimeClasses", Spec, r#"{"runtimeClassName": "kata"}"#),
    ("schedulers", Spec, r#"{"schedulerName": "evil-scheduler"}"#),
    (
        "topologySpread",
        Spec,
        r#"{"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}]}"#,
    ),
    // Accounts and names.
    ("serviceAccounts", Spec, r#"{"serviceAccountName": "admin", "serviceAccount": "admin"}"#),
    ("serviceAccounts", Spec, r#"{"serviceAccount": "admin"}"#),
    ("shareProcessNamespace", Spec, r#"{"shareProcessNamespace": true}"#),
    ("hostAliases", Spec, r#"{"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["registry.example.org"]}]}"#),
    ("dns", Spec, r#"{"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"]}}"#),
    ("dns", Spec, r#"{"dnsConfig": {"searches": ["evil.example.org"]}}"#),
    ("dns", Spec, r#"{"dnsPolicy": "Default"}"#),
    ("resourceClaims", Spec, r#"{"resourceClaims": [{"name": "gpu", "resourceClaimName": "root"}]}"#),
    ("secrets", Spec, r#"{"imagePullSecrets": [{"name": "team-pull"}, {"name": "root"}]}"#),
    ("secrets", Container, r#"{"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "root", "key": "k"}}}]}"#),
    ("secrets", Container, r#"{"envFrom": [{"secretRef": {"name": "root", "optional": true}}]}"#),
    (
        "configMaps",
        Container,
        r#"{"env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "root", "key": "k"}}}]}"#,
    ),
    ("configMaps", Container, r#"{"envFrom": [{"prefix": "P_", "configMapRef": {"name": "root"}}]}"#),
    ("inlineSecrets", Container, r#"{"env": [{"name": "DB_PASSWORD", "value": "abcdef"}]}"#),
    ("inlineSecrets", Container, r#"{"env": [{"name": "X", "value": "fs.s3a.secret.key=abcdef"}]}"#),
    ("images", OtherContainer, r#"{"image": "evil.example.org/miner:1"}"#),
    ("images", OtherContainer, r#"{"image": "miner"}"#),
    ("images", OtherContainer, r#"{"image": "registry.example.org/team-evil/a:1"}"#),
    ("images", OtherContainer, r#"{"image": "registry.example.org:5000/team/a:1"}"#),
    // Sizes.
    ("limits", Spec, r#"{"terminationGracePeriodSeconds": 100000}"#),
    ("limits", Spec, r#"{"resources": {"limits": {"cpu": "64", "memory": "1Ti"}}}"#),
    (
        "limits",
        Spec,
        r#"{"initContainers": [{"name": "a", "image": "registry.example.org/team/a:1"}, {"name": "b", "image": "registry.example.org/team/a:1"}, {"name": "c", "image": "registry.example.org/team/a:1"}, {"name": "d", "image": "registry.example.org/team/a:1"}]}"#,
    ),
    ("limits", Container, r#"{"resources": {"limits": {"cpu": "64"}}}"#),
    ("limits", Container, r#"{"resources": {"limits": {"nvidia.com/gpu": "8"}}}"#),
    ("limits", OtherContainer, r#"{"resources": {"limits": {"memory": "512Gi"}}}"#),
    ("limits", OtherContainer, r#"{"resources": {"requests": {"memory": "512Gi"}, "limits": {"memory": "512Gi"}}}"#),
    ("limits", OtherContainer, r#"{"resources": null}"#),
    // Labels and annotations.
    ("labels", Metadata, r#"{"labels": {"app": "frontend"}}"#),
    ("labels", Metadata, r#"{"labels": {"topology.kubernetes.io/zone": "a"}}"#),
    ("annotations", Metadata, r#"{"annotations": {"blocked.example.org/a": "b"}}"#),
    ("annotations", Metadata, r#"{"annotations": {"scheduling.k8s.io/group-name": "other"}}"#),
    ("annotations", Metadata, r#"{"annotations": {"kubernetes.io/ingress-bandwidth": "100G"}}"#),
    // Volumes by their types.
    ("volumes", Volume, r#"{"hostPath": {"path": "/"}}"#),
    ("volumes", Volume, r#"{"hostPath": {"path": "/var/run/docker.sock", "type": "Socket"}}"#),
    ("volumes", Volume, r#"{"awsElasticBlockStore": {"volumeID": "v"}}"#),
    ("volumes", Volume, r#"{"azureDisk": {"diskName": "d", "diskURI": "u"}}"#),
    ("volumes", Volume, r#"{"azureFile": {"secretName": "root", "shareName": "s"}}"#),
    ("volumes", Volume, r#"{"cephfs": {"monitors": ["10.0.0.1:6789"]}}"#),
    ("volumes", Volume, r#"{"cinder": {"volumeID": "v"}}"#),
    (
        "volumes",
        Volume,
        r#"{"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}"#,
    ),
    ("volumes", Volume, r#"{"fc": {"targetWWNs": ["50060e801049cfd1"], "lun": 0}}"#),
    ("volumes", Volume, r#"{"flexVolume": {"driver": "evil.example.org/driver"}}"#),
    ("volumes", Volume, r#"{"flocker": {"datasetName": "d"}}"#),
    ("volumes", Volume, r#"{"gcePersistentDisk": {"pdName": "d"}}"#),
    ("volumes", Volume, r#"{"gitRepo": {"repository": "https://evil.example.org/a.git"}}"#),
    ("volumes", Volume, r#"{"glusterfs": {"endpoints": "e", "path": "p"}}"#),
    (
        "volumes",
        Volume,
        r#"{"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}"#,
    ),
    ("volumes", Volume, r#"{"photonPersistentDisk": {"pdID": "p"}}"#),
    ("volumes", Volume, r#"{"portworxVolume": {"volumeID": "v"}}"#),
    ("volumes", Volume, r#"{"quobyte": {"registry": "10.0.0.1:7861", "volume": "v"}}"#),
    ("volumes", Volume, r#"{"rbd": {"monitors": ["10.0.0.1:6789"], "image": "i"}}"#),
    (
        "volumes",
        Volume,
        r#"{"scaleIO": {"gateway": "https://10.0.0.1", "system": "s", "secretRef": {"name": "root"}, "volumeName": "v"}}"#,
    ),
    ("volumes", Volume, r#"{"storageos": {"volumeName": "v"}}"#),
    ("volumes", Volume, r#"{"vsphereVolume": {"volumePath": "v"}}"#),
    // What volumes refer to.
    ("csiDrivers", Volume, r#"{"csi": {"driver": "evil.example.org"}}"#),
    ("secrets", Volume, r#"{"csi": {"driver": "csi.example.org", "nodePublishSecretRef": {"name": "root"}}}"#),
    ("nfsServers", Volume, r#"{"nfs": {"server": "evil.example.org", "path": "/"}}"#),
    ("claims", Volume, r#"{"persistentVolumeClaim": {"claimName": "root"}}"#),
    ("secrets", Volume, r#"{"secret": {"secretName": "root"}}"#),
    ("secrets", Volume, r#"{"secret": {"secretName": "root", "optional": true}}"#),
    ("configMaps", Volume, r#"{"configMap": {"name": "root"}}"#),
    (
        "secrets",
        Volume,
        r#"{"projected": {"sources": [{"secret": {"name": "team-a"}}, {"secret": {"name": "root"}}]}}"#,
    ),
    ("configMaps", Volume, r#"{"projected": {"sources": [{"configMap": {"name": "root"}}]}}"#),
    (
        "serviceAccountTokens",
        Volume,
        r#"{"projected": {"sources": [{"serviceAccountToken": {"audience": "vault", "path": "token"}}]}}"#,
    ),
    (
        "projectedSources",
        Volume,
        r#"{"projected": {"sources": [{"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}}"#,
    ),
    ("projectedSources", Volume, r#"{"projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "p"}}]}}"#),
    (
        "projectedSources",
        Volume,
        r#"{"projected": {"sources": [{"podCertificate": {"signerName": "example.org/s", "keyType": "ED25519", "credentialBundlePath": "p"}}]}}"#,
    ),
    ("images", Volume, r#"{"image": {"reference": "evil.example.org/data:1"}}"#),
    (
        "storageClasses",
        Volume,
        r#"{"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "root", "resources": {"requests": {"storage": "1Gi"}}}}}}"#,
    ),
    (
        "storageClasses",
        Volume,
        r#"{"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}"#,
    ),
    (
        "claims",
        Volume,
        r#"{"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "dataSource": {"kind": "PersistentVolumeClaim", "name": "root"}, "resources": {"requests": {"storage": "1Gi"}}}}}}"#,
    ),
    (
        "claims",
        Volume,
        r#"{"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "volumeName": "root", "resources": {"requests": {"storage": "1Gi"}}}}}}"#,
    ),
    (
        "labels",
        Volume,
        r#"{"ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"app": "frontend"}}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}}}}"#,
    ),
    (
        "limits",
        Volume,
        r#"{"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "100Ti"}}}}}}"#,
    ),
    ("limits", Volume, r#"{"emptyDir": {"medium": "Memory"}}"#),
    ("limits", Volume, r#"{"emptyDir": {"sizeLimit": "1Ti"}}"#),
];

/// Fields within the policy, for each rule that can be kept by a field.
pub(crate) const PERMITTED: &[(&str, Place, &str)] = &[
    (
        "podSecurity",
        Spec,
        r#"{"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": 185, "fsGroup": 185}}"#,
    ),
    (
        "podSecurity",
        Container,
        r#"{"securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}}"#,
    ),
    ("nodeSelectors", Spec, r#"{"nodeSelector": {"pool": "team"}}"#),
    (
        "nodeSelectors",
        Spec,
        r#"{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["team"]}]}]}}}}"#,
    ),
    (
        "affinity",
        Spec,
        r#"{"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"team": "red"}}}}]}}}"#,
    ),
    ("tolerations", Spec, r#"{"tolerations": [{"key": "pool", "operator": "Exists"}]}"#),
    ("priorityClasses", Spec, r#"{"priorityClassName": "batch"}"#),
    ("runtimeClasses", Spec, r#"{"runtimeClassName": "gvisor"}"#),
    ("schedulers", Spec, r#"{"schedulerName": "team-scheduler"}"#),
    ("serviceAccounts", Spec, r#"{"serviceAccountName": "spark", "serviceAccount": "spark"}"#),
    ("serviceAccountTokens", Spec, r#"{"automountServiceAccountToken": true}"#),
    ("dns", Spec, r#"{"dnsPolicy": "ClusterFirst"}"#),
    ("limits", Spec, r#"{"terminationGracePeriodSeconds": 60}"#),
    ("secrets", Spec, r#"{"imagePullSecrets": [{"name": "team-pull"}]}"#),
    (
        "secrets",
        Container,
        r#"{"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "team-a", "key": "k"}}}]}"#,
    ),
    ("configMaps", Container, r#"{"envFrom": [{"configMapRef": {"name": "team-a"}}]}"#),
    ("inlineSecrets", Container, r#"{"env": [{"name": "MODE", "value": "fast"}]}"#),
    (
        "images",
        OtherContainer,
        r#"{"image": "registry.example.org/team/deep/er@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
    ),
    ("limits", Container, r#"{"resources": {"limits": {"cpu": "1"}}}"#),
    ("limits", OtherContainer, r#"{"resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}"#),
    ("labels", Metadata, r#"{"labels": {"team": "red"}}"#),
    (
        "annotations",
        Metadata,
        r#"{"annotations": {"example.org/a": "b", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}"#,
    ),
    ("volumes", Volume, r#"{"emptyDir": {"sizeLimit": "100Mi"}}"#),
    ("csiDrivers", Volume, r#"{"csi": {"driver": "csi.example.org", "nodePublishSecretRef": {"name": "team-a"}}}"#),
    ("nfsServers", Volume, r#"{"nfs": {"server": "nfs.example.org", "path": "/team"}}"#),
    ("claims", Volume, r#"{"persistentVolumeClaim": {"claimName": "team-data"}}"#),
    ("secrets", Volume, r#"{"secret": {"secretName": "team-a"}}"#),
    ("configMaps", Volume, r#"{"configMap": {"name": "team-a"}}"#),
    (
        "projectedSources",
        Volume,
        r#"{"projected": {"sources": [{"secret": {"name": "team-a"}}, {"serviceAccountToken": {"path": "token"}}]}}"#,
    ),
    ("images", Volume, r#"{"image": {"reference": "registry.example.org/team/data:1"}}"#),
    (
        "storageClasses",
        Volume,
        r#"{"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}}}}"#,
    ),
];

/// Fields that Spark and the gateway write over in a template, so that they break a rule only in a pod that a driver creates itself.
pub(crate) const REFUSED_OF_DRIVERS: &[(&str, Place, &str)] = &[
    ("images", OtherContainer, r#"{"image": "evil.example.org/miner:1"}"#),
    ("images", OtherContainer, r#"{"image": "registry.example.org/team/../evil:1"}"#),
    ("limits", OtherContainer, r#"{"resources": {"limits": {"memory": "512Gi"}}}"#),
    ("limits", OtherContainer, r#"{"resources": null}"#),
    ("labels", Metadata, r#"{"labels": {"spark-role": "driver"}}"#),
    ("labels", Metadata, r#"{"labels": {"spark-role": null}}"#),
    ("labels", Metadata, r#"{"labels": {"sparkgate.dev/owner": "x"}}"#),
    ("annotations", Metadata, r#"{"annotations": {"sparkgate.dev/note": "x"}}"#),
    ("structure", Metadata, r#"{"ownerReferences": null}"#),
];

/// The container of a pod that has a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Spark's own, the first.
    Main,
    Init,
    /// An init container that stays.
    Sidecar,
    Extra,
}

impl Place {
    /// Returns the place in a pod that a driver creates itself: no one writes over the fields of Spark's own container.
    pub(crate) fn of_driver(self) -> Self {
        if self == OtherContainer { Container } else { self }
    }

    /// Returns the containers that can have a field at this place. Other places have one of no container.
    pub(crate) fn carriers(self) -> &'static [Carrier] {
        match self {
            Container => &[Carrier::Main, Carrier::Init, Carrier::Sidecar, Carrier::Extra],
            OtherContainer => &[Carrier::Init, Carrier::Sidecar, Carrier::Extra],
            Metadata | OwnContainer | Spec | Volume => &[Carrier::Main],
        }
    }
}

/// Puts a field into a pod whose first container is Spark's own.
pub(crate) fn put(pod: &mut Value, place: Place, carrier: Carrier, field: &str) {
    let field: Value = serde_json::from_str(field).unwrap();
    match place {
        Metadata => merge(&mut pod["metadata"], field),
        Spec => merge(&mut pod["spec"], field),
        Volume => {
            let mut volume = json!({"name": "v"});
            merge(&mut volume, field);
            push(&mut pod["spec"]["volumes"], volume);
            push(&mut pod["spec"]["containers"][0]["volumeMounts"], json!({"name": "v", "mountPath": "/v"}));
        }
        Container | OtherContainer | OwnContainer => {
            let mut other = json!({
                "name": "other", "image": "registry.example.org/team/other:1",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
            });
            match carrier {
                Carrier::Main => merge(&mut pod["spec"]["containers"][0], field),
                Carrier::Init => {
                    merge(&mut other, field);
                    push(&mut pod["spec"]["initContainers"], other);
                }
                Carrier::Sidecar => {
                    other["restartPolicy"] = json!("Always");
                    merge(&mut other, field);
                    push(&mut pod["spec"]["initContainers"], other);
                }
                Carrier::Extra => {
                    merge(&mut other, field);
                    push(&mut pod["spec"]["containers"], other);
                }
            }
        }
    }
}

/// Returns the names of all fields that a field in JSON has.
pub(crate) fn names(field: &str) -> Vec<String> {
    fn collect(value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    names.push(name.clone());
                    collect(value, names);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| collect(value, names)),
            _ => {}
        }
    }
    let mut names = Vec::new();
    collect(&serde_json::from_str(field).unwrap(), &mut names);
    names
}

fn push(list: &mut Value, element: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().unwrap().push(element);
}

/// Merges as a JSON merge patch does, but appends lists.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(target), Value::Array(patch)) => target.extend(patch),
        (target, patch) => *target = patch,
    }
}
