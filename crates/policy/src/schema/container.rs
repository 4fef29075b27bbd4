//! The fields of a container.

use super::{
    Field,
    Kind::{Bool, Int, Ints, Object, Objects, Quantity, QuantityMap, Scalar, Text, Texts},
    free, refused, ruled,
};

pub(super) const APP_ARMOR_PROFILE: [Field; 2] = [free("localhostProfile", Text), free("type", Text)];

pub(super) const CAPABILITIES: [Field; 2] = [free("add", Texts), free("drop", Texts)];

pub(super) const CONFIG_MAP_ENV_SOURCE: [Field; 2] = [ruled("name", Text, "configMaps"), free("optional", Bool)];

pub(super) const CONFIG_MAP_KEY_SELECTOR: [Field; 3] =
    [free("key", Text), ruled("name", Text, "configMaps"), free("optional", Bool)];

pub(super) const CONTAINER: [Field; 25] = [
    free("args", Texts),
    free("command", Texts),
    free("env", Objects(&ENV_VAR)),
    free("envFrom", Objects(&ENV_FROM_SOURCE)),
    ruled("image", Text, "images"),
    free("imagePullPolicy", Text),
    free("lifecycle", Object(&LIFECYCLE)),
    free("livenessProbe", Object(&PROBE)),
    free("name", Text),
    free("ports", Objects(&CONTAINER_PORT)),
    free("readinessProbe", Object(&PROBE)),
    free("resizePolicy", Objects(&CONTAINER_RESIZE_POLICY)),
    ruled("resources", Object(&RESOURCE_REQUIREMENTS), "limits"),
    ruled("restartPolicy", Text, "restarts"),
    ruled("restartPolicyRules", Objects(&CONTAINER_RESTART_RULE), "restarts"),
    free("securityContext", Object(&SECURITY_CONTEXT)),
    free("startupProbe", Object(&PROBE)),
    free("stdin", Bool),
    free("stdinOnce", Bool),
    free("terminationMessagePath", Text),
    free("terminationMessagePolicy", Text),
    free("tty", Bool),
    free("volumeDevices", Objects(&VOLUME_DEVICE)),
    free("volumeMounts", Objects(&VOLUME_MOUNT)),
    free("workingDir", Text),
];

pub(super) const CONTAINER_PORT: [Field; 5] = [
    free("containerPort", Int),
    free("hostIP", Text),
    ruled("hostPort", Int, "podSecurity"),
    free("name", Text),
    free("protocol", Text),
];

pub(super) const CONTAINER_RESIZE_POLICY: [Field; 2] = [free("resourceName", Text), free("restartPolicy", Text)];

pub(super) const CONTAINER_RESTART_RULE: [Field; 2] =
    [ruled("action", Text, "restarts"), free("exitCodes", Object(&CONTAINER_RESTART_RULE_ON_EXIT_CODES))];

pub(super) const CONTAINER_RESTART_RULE_ON_EXIT_CODES: [Field; 2] = [free("operator", Text), free("values", Ints)];

pub(super) const ENV_FROM_SOURCE: [Field; 3] = [
    free("configMapRef", Object(&CONFIG_MAP_ENV_SOURCE)),
    free("prefix", Text),
    free("secretRef", Object(&SECRET_ENV_SOURCE)),
];

pub(super) const ENV_VAR: [Field; 3] =
    [free("name", Text), ruled("value", Text, "inlineSecrets"), free("valueFrom", Object(&ENV_VAR_SOURCE))];

pub(super) const ENV_VAR_SOURCE: [Field; 5] = [
    free("configMapKeyRef", Object(&CONFIG_MAP_KEY_SELECTOR)),
    free("fieldRef", Object(&OBJECT_FIELD_SELECTOR)),
    free("fileKeyRef", Object(&FILE_KEY_SELECTOR)),
    free("resourceFieldRef", Object(&RESOURCE_FIELD_SELECTOR)),
    free("secretKeyRef", Object(&SECRET_KEY_SELECTOR)),
];

pub(super) const EPHEMERAL_CONTAINER: [Field; 26] = [
    free("args", Texts),
    free("command", Texts),
    free("env", Objects(&ENV_VAR)),
    free("envFrom", Objects(&ENV_FROM_SOURCE)),
    ruled("image", Text, "images"),
    free("imagePullPolicy", Text),
    free("lifecycle", Object(&LIFECYCLE)),
    free("livenessProbe", Object(&PROBE)),
    free("name", Text),
    free("ports", Objects(&CONTAINER_PORT)),
    free("readinessProbe", Object(&PROBE)),
    free("resizePolicy", Objects(&CONTAINER_RESIZE_POLICY)),
    ruled("resources", Object(&RESOURCE_REQUIREMENTS), "limits"),
    ruled("restartPolicy", Text, "restarts"),
    ruled("restartPolicyRules", Objects(&CONTAINER_RESTART_RULE), "restarts"),
    free("securityContext", Object(&SECURITY_CONTEXT)),
    free("startupProbe", Object(&PROBE)),
    free("stdin", Bool),
    free("stdinOnce", Bool),
    free("targetContainerName", Text),
    free("terminationMessagePath", Text),
    free("terminationMessagePolicy", Text),
    free("tty", Bool),
    free("volumeDevices", Objects(&VOLUME_DEVICE)),
    free("volumeMounts", Objects(&VOLUME_MOUNT)),
    free("workingDir", Text),
];

pub(super) const EXEC_ACTION: [Field; 1] = [free("command", Texts)];

pub(super) const FILE_KEY_SELECTOR: [Field; 4] =
    [free("key", Text), free("optional", Bool), free("path", Text), free("volumeName", Text)];

pub(super) const GRPC_ACTION: [Field; 3] = [free("mode", Text), free("port", Int), free("service", Text)];

pub(super) const HTTP_GET_ACTION: [Field; 6] = [
    ruled("host", Text, "podSecurity"),
    free("httpHeaders", Objects(&HTTP_HEADER)),
    free("path", Text),
    free("port", Scalar),
    free("protocol", Text),
    free("scheme", Text),
];

pub(super) const HTTP_HEADER: [Field; 2] = [free("name", Text), free("value", Text)];

pub(super) const LIFECYCLE: [Field; 3] = [
    free("postStart", Object(&LIFECYCLE_HANDLER)),
    free("preStop", Object(&LIFECYCLE_HANDLER)),
    free("stopSignal", Text),
];

pub(super) const LIFECYCLE_HANDLER: [Field; 4] = [
    free("exec", Object(&EXEC_ACTION)),
    free("httpGet", Object(&HTTP_GET_ACTION)),
    free("sleep", Object(&SLEEP_ACTION)),
    free("tcpSocket", Object(&TCP_SOCKET_ACTION)),
];

pub(super) const OBJECT_FIELD_SELECTOR: [Field; 2] = [free("apiVersion", Text), free("fieldPath", Text)];

pub(super) const PROBE: [Field; 10] = [
    free("exec", Object(&EXEC_ACTION)),
    free("failureThreshold", Int),
    free("grpc", Object(&GRPC_ACTION)),
    free("httpGet", Object(&HTTP_GET_ACTION)),
    free("initialDelaySeconds", Int),
    free("periodSeconds", Int),
    free("successThreshold", Int),
    free("tcpSocket", Object(&TCP_SOCKET_ACTION)),
    free("terminationGracePeriodSeconds", Int),
    free("timeoutSeconds", Int),
];

pub(super) const RESOURCE_CLAIM: [Field; 2] = [free("name", Text), free("request", Text)];

pub(super) const RESOURCE_FIELD_SELECTOR: [Field; 3] =
    [free("containerName", Text), free("divisor", Quantity), free("resource", Text)];

pub(super) const RESOURCE_REQUIREMENTS: [Field; 3] =
    [free("claims", Objects(&RESOURCE_CLAIM)), free("limits", QuantityMap), free("requests", QuantityMap)];

pub(super) const SE_LINUX_OPTIONS: [Field; 4] =
    [free("level", Text), free("role", Text), free("type", Text), free("user", Text)];

pub(super) const SECCOMP_PROFILE: [Field; 2] = [free("localhostProfile", Text), free("type", Text)];

pub(super) const SECRET_ENV_SOURCE: [Field; 2] = [ruled("name", Text, "secrets"), free("optional", Bool)];

pub(super) const SECRET_KEY_SELECTOR: [Field; 3] =
    [free("key", Text), ruled("name", Text, "secrets"), free("optional", Bool)];

pub(super) const SECURITY_CONTEXT: [Field; 12] = [
    ruled("allowPrivilegeEscalation", Bool, "podSecurity"),
    ruled("appArmorProfile", Object(&APP_ARMOR_PROFILE), "podSecurity"),
    ruled("capabilities", Object(&CAPABILITIES), "podSecurity"),
    ruled("privileged", Bool, "podSecurity"),
    ruled("procMount", Text, "podSecurity"),
    free("readOnlyRootFilesystem", Bool),
    free("runAsGroup", Int),
    ruled("runAsNonRoot", Bool, "podSecurity"),
    ruled("runAsUser", Int, "podSecurity"),
    ruled("seLinuxOptions", Object(&SE_LINUX_OPTIONS), "podSecurity"),
    ruled("seccompProfile", Object(&SECCOMP_PROFILE), "podSecurity"),
    ruled("windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS), "podSecurity"),
];

pub(super) const SLEEP_ACTION: [Field; 1] = [free("seconds", Int)];

pub(super) const TCP_SOCKET_ACTION: [Field; 2] = [ruled("host", Text, "podSecurity"), free("port", Scalar)];

pub(super) const VOLUME_DEVICE: [Field; 2] = [free("devicePath", Text), free("name", Text)];

pub(super) const VOLUME_MOUNT: [Field; 8] = [
    free("bindMountOptions", Texts),
    free("mountPath", Text),
    ruled("mountPropagation", Text, "podSecurity"),
    free("name", Text),
    free("readOnly", Bool),
    free("recursiveReadOnly", Text),
    free("subPath", Text),
    free("subPathExpr", Text),
];

pub(super) const WINDOWS_SECURITY_CONTEXT_OPTIONS: [Field; 4] = [
    refused("gmsaCredentialSpec", Text, "structure", "Spark runs on Linux"),
    refused("gmsaCredentialSpecName", Text, "structure", "Spark runs on Linux"),
    ruled("hostProcess", Bool, "podSecurity"),
    free("runAsUserName", Text),
];
