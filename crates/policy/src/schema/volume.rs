//! The fields of a volume.

use super::{
    Field,
    Kind::{Bool, Int, Object, Objects, Quantity, Text, TextMap, Texts},
    container::{OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR},
    free,
    object::{CLAIM_SPEC, LABEL_SELECTOR, OBJECT_META},
    ruled,
};

pub(super) const AWS_ELASTIC_BLOCK_STORE: [Field; 4] =
    [free("fsType", Text), free("partition", Int), free("readOnly", Bool), free("volumeID", Text)];

pub(super) const AZURE_DISK: [Field; 6] = [
    free("cachingMode", Text),
    free("diskName", Text),
    free("diskURI", Text),
    free("fsType", Text),
    free("kind", Text),
    free("readOnly", Bool),
];

pub(super) const AZURE_FILE: [Field; 3] =
    [free("readOnly", Bool), ruled("secretName", Text, "secrets"), free("shareName", Text)];

pub(super) const CSI: [Field; 5] = [
    ruled("driver", Text, "csiDrivers"),
    free("fsType", Text),
    ruled("nodePublishSecretRef", Object(&LOCAL_OBJECT_REFERENCE), "secrets"),
    free("readOnly", Bool),
    free("volumeAttributes", TextMap),
];

pub(super) const CEPH_FS: [Field; 6] = [
    free("monitors", Texts),
    free("path", Text),
    free("readOnly", Bool),
    free("secretFile", Text),
    ruled("secretRef", Object(&LOCAL_OBJECT_REFERENCE), "secrets"),
    free("user", Text),
];

pub(super) const CINDER: [Field; 4] = [
    free("fsType", Text),
    free("readOnly", Bool),
    ruled("secretRef", Object(&LOCAL_OBJECT_REFERENCE), "secrets"),
    free("volumeID", Text),
];

pub(super) const CLUSTER_TRUST_BUNDLE_PROJECTION: [Field; 6] = [
    free("labelSelector", Object(&LABEL_SELECTOR)),
    free("name", Text),
    free("optional", Bool),
    free("path", Text),
    free("signerName", Text),
    free("user", Int),
];

pub(super) const CONFIG_MAP_PROJECTION: [Field; 3] =
    [free("items", Objects(&KEY_TO_PATH)), ruled("name", Text, "configMaps"), free("optional", Bool)];

pub(super) const CONFIG_MAP: [Field; 5] = [
    free("defaultMode", Int),
    free("defaultUser", Int),
    free("items", Objects(&KEY_TO_PATH)),
    ruled("name", Text, "configMaps"),
    free("optional", Bool),
];

pub(super) const DOWNWARD_API_PROJECTION: [Field; 1] = [free("items", Objects(&DOWNWARD_API_VOLUME_FILE))];

pub(super) const DOWNWARD_API_VOLUME_FILE: [Field; 5] = [
    free("fieldRef", Object(&OBJECT_FIELD_SELECTOR)),
    free("mode", Int),
    free("path", Text),
    free("resourceFieldRef", Object(&RESOURCE_FIELD_SELECTOR)),
    free("user", Int),
];

pub(super) const DOWNWARD_API: [Field; 3] =
    [free("defaultMode", Int), free("defaultUser", Int), free("items", Objects(&DOWNWARD_API_VOLUME_FILE))];

pub(super) const EMPTY_DIR: [Field; 3] =
    [free("medium", Text), free("mode", Int), ruled("sizeLimit", Quantity, "limits")];

pub(super) const EPHEMERAL: [Field; 1] = [free("volumeClaimTemplate", Object(&CLAIM_TEMPLATE))];

pub(super) const FC: [Field; 5] =
    [free("fsType", Text), free("lun", Int), free("readOnly", Bool), free("targetWWNs", Texts), free("wwids", Texts)];

pub(super) const FLEX: [Field; 5] = [
    ruled("driver", Text, "csiDrivers"),
    free("fsType", Text),
    free("options", TextMap),
    free("readOnly", Bool),
    ruled("secretRef", Object(&LOCAL_OBJECT_REFERENCE), "secrets"),
];

pub(super) const FLOCKER: [Field; 2] = [free("datasetName", Text), free("datasetUUID", Text)];

pub(super) const GCE_PERSISTENT_DISK: [Field; 4] =
    [free("fsType", Text), free("partition", Int), free("pdName", Text), free("readOnly", Bool)];

pub(super) const GIT_REPO: [Field; 3] = [free("directory", Text), free("repository", Text), free("revision", Text)];

pub(super) const GLUSTERFS: [Field; 3] = [free("endpoints", Text), free("path", Text), free("readOnly", Bool)];

pub(super) const HOST_PATH: [Field; 2] = [ruled("path", Text, "hostPaths"), free("type", Text)];

pub(super) const ISCSI: [Field; 11] = [
    free("chapAuthDiscovery", Bool),
    free("chapAuthSession", Bool),
    free("fsType", Text),
    free("initiatorName", Text),
    free("iqn", Text),
    free("iscsiInterface", Text),
    free("lun", Int),
    free("portals", Texts),
    free("readOnly", Bool),
    ruled("secretRef", Object(&LOCAL_OBJECT_REFERENCE), "secrets"),
    free("targetPortal", Text),
];

pub(super) const IMAGE: [Field; 2] = [free("pullPolicy", Text), ruled("reference", Text, "images")];

pub(super) const KEY_TO_PATH: [Field; 4] =
    [free("key", Text), free("mode", Int), free("path", Text), free("user", Int)];

pub(super) const LOCAL_OBJECT_REFERENCE: [Field; 1] = [free("name", Text)];

pub(super) const NFS: [Field; 3] = [free("path", Text), free("readOnly", Bool), ruled("server", Text, "nfsServers")];

pub(super) const CLAIM_TEMPLATE: [Field; 2] =
    [free("metadata", Object(&OBJECT_META)), free("spec", Object(&CLAIM_SPEC))];

pub(super) const CLAIM: [Field; 2] = [ruled("claimName", Text, "claims"), free("readOnly", Bool)];

pub(super) const PHOTON_PERSISTENT_DISK: [Field; 2] = [free("fsType", Text), free("pdID", Text)];

pub(super) const POD_CERTIFICATE_PROJECTION: [Field; 8] = [
    free("certificateChainPath", Text),
    free("credentialBundlePath", Text),
    free("keyPath", Text),
    free("keyType", Text),
    free("maxExpirationSeconds", Int),
    free("signerName", Text),
    free("user", Int),
    free("userAnnotations", TextMap),
];

pub(super) const PORTWORX: [Field; 3] = [free("fsType", Text), free("readOnly", Bool), free("volumeID", Text)];

pub(super) const PROJECTED: [Field; 3] =
    [free("defaultMode", Int), free("defaultUser", Int), free("sources", Objects(&VOLUME_PROJECTION))];

pub(super) const QUOBYTE: [Field; 6] = [
    free("group", Text),
    free("readOnly", Bool),
    free("registry", Text),
    free("tenant", Text),
    free("user", Text),
    free("volume", Text),
];

pub(super) const RBD: [Field; 8] = [
    free("fsType", Text),
    free("image", Text),
    free("keyring", Text),
    free("monitors", Texts),
    free("pool", Text),
    free("readOnly", Bool),
    ruled("secretRef", Object(&LOCAL_OBJECT_REFERENCE), "secrets"),
    free("user", Text),
];

pub(super) const SCALE_IO: [Field; 10] = [
    free("fsType", Text),
    free("gateway", Text),
    free("protectionDomain", Text),
    free("readOnly", Bool),
    ruled("secretRef", Object(&LOCAL_OBJECT_REFERENCE), "secrets"),
    free("sslEnabled", Bool),
    free("storageMode", Text),
    free("storagePool", Text),
    free("system", Text),
    free("volumeName", Text),
];

pub(super) const SECRET_PROJECTION: [Field; 3] =
    [free("items", Objects(&KEY_TO_PATH)), ruled("name", Text, "secrets"), free("optional", Bool)];

pub(super) const SECRET: [Field; 5] = [
    free("defaultMode", Int),
    free("defaultUser", Int),
    free("items", Objects(&KEY_TO_PATH)),
    free("optional", Bool),
    ruled("secretName", Text, "secrets"),
];

pub(super) const SERVICE_ACCOUNT_TOKEN_PROJECTION: [Field; 4] = [
    ruled("audience", Text, "serviceAccountTokens"),
    free("expirationSeconds", Int),
    free("path", Text),
    free("user", Int),
];

pub(super) const STORAGE_OS: [Field; 5] = [
    free("fsType", Text),
    free("readOnly", Bool),
    ruled("secretRef", Object(&LOCAL_OBJECT_REFERENCE), "secrets"),
    free("volumeName", Text),
    free("volumeNamespace", Text),
];

pub(super) const VOLUME: [Field; 31] = [
    ruled("awsElasticBlockStore", Object(&AWS_ELASTIC_BLOCK_STORE), "volumes"),
    ruled("azureDisk", Object(&AZURE_DISK), "volumes"),
    ruled("azureFile", Object(&AZURE_FILE), "volumes"),
    ruled("cephfs", Object(&CEPH_FS), "volumes"),
    ruled("cinder", Object(&CINDER), "volumes"),
    ruled("configMap", Object(&CONFIG_MAP), "volumes"),
    ruled("csi", Object(&CSI), "volumes"),
    ruled("downwardAPI", Object(&DOWNWARD_API), "volumes"),
    ruled("emptyDir", Object(&EMPTY_DIR), "volumes"),
    ruled("ephemeral", Object(&EPHEMERAL), "volumes"),
    ruled("fc", Object(&FC), "volumes"),
    ruled("flexVolume", Object(&FLEX), "volumes"),
    ruled("flocker", Object(&FLOCKER), "volumes"),
    ruled("gcePersistentDisk", Object(&GCE_PERSISTENT_DISK), "volumes"),
    ruled("gitRepo", Object(&GIT_REPO), "volumes"),
    ruled("glusterfs", Object(&GLUSTERFS), "volumes"),
    ruled("hostPath", Object(&HOST_PATH), "volumes"),
    ruled("image", Object(&IMAGE), "volumes"),
    ruled("iscsi", Object(&ISCSI), "volumes"),
    free("name", Text),
    ruled("nfs", Object(&NFS), "volumes"),
    ruled("persistentVolumeClaim", Object(&CLAIM), "volumes"),
    ruled("photonPersistentDisk", Object(&PHOTON_PERSISTENT_DISK), "volumes"),
    ruled("portworxVolume", Object(&PORTWORX), "volumes"),
    ruled("projected", Object(&PROJECTED), "volumes"),
    ruled("quobyte", Object(&QUOBYTE), "volumes"),
    ruled("rbd", Object(&RBD), "volumes"),
    ruled("scaleIO", Object(&SCALE_IO), "volumes"),
    ruled("secret", Object(&SECRET), "volumes"),
    ruled("storageos", Object(&STORAGE_OS), "volumes"),
    ruled("vsphereVolume", Object(&VSPHERE_VIRTUAL_DISK), "volumes"),
];

pub(super) const VOLUME_PROJECTION: [Field; 6] = [
    ruled("clusterTrustBundle", Object(&CLUSTER_TRUST_BUNDLE_PROJECTION), "projectedSources"),
    ruled("configMap", Object(&CONFIG_MAP_PROJECTION), "projectedSources"),
    ruled("downwardAPI", Object(&DOWNWARD_API_PROJECTION), "projectedSources"),
    ruled("podCertificate", Object(&POD_CERTIFICATE_PROJECTION), "projectedSources"),
    ruled("secret", Object(&SECRET_PROJECTION), "projectedSources"),
    ruled("serviceAccountToken", Object(&SERVICE_ACCOUNT_TOKEN_PROJECTION), "projectedSources"),
];

pub(super) const VSPHERE_VIRTUAL_DISK: [Field; 4] =
    [free("fsType", Text), free("storagePolicyID", Text), free("storagePolicyName", Text), free("volumePath", Text)];
