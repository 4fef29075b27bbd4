//! The environment variables of a container: literals, references, and `$(NAME)`.

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, Pod};

use super::fault::Fault;
use super::objects::{Entries, Objects};

/// Names and values in the order of the pod; a later variable of the same name replaces an earlier one, as in Kubernetes.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Env(Vec<(String, String)>);

impl Env {
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some(pair) => pair.1 = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(super) fn set_default(&mut self, name: &str, value: impl Into<String>) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn map_values(&mut self, change: impl Fn(&str) -> String) {
        for (_, value) in &mut self.0 {
            *value = change(value);
        }
    }

    /// Replaces `$(NAME)` where NAME is set; `$$` stands for `$`. Kubernetes does so in values, args and `subPathExpr`.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(tail) = after.strip_prefix('$') {
                out.push('$');
                rest = tail;
                continue;
            }
            let name = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
            match name.and_then(|(name, tail)| Some((self.get(name)?, tail))) {
                Some((value, tail)) => {
                    out.push_str(value);
                    rest = tail;
                }
                None => {
                    out.push('$');
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// Resolves `envFrom` and `env` of a container. The pod's status must already carry its address.
pub(super) async fn resolve(pod: &Pod, container: &Container, objects: &Objects) -> Result<Env, Fault> {
    let mut env = Env::default();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let entries = if let Some(map) = &source.config_map_ref {
            present(objects.config_map(&map.name).await?, "configmap", &map.name, map.optional)?
        } else if let Some(secret) = &source.secret_ref {
            present(objects.secret(&secret.name).await?, "secret", &secret.name, secret.optional)?
        } else {
            None
        };
        for (key, value) in entries.into_iter().flatten() {
            env.set(&format!("{prefix}{key}"), String::from_utf8_lossy(&value));
        }
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = value(variable, pod, objects, &env).await? {
            env.set(&variable.name, value);
        }
    }
    Ok(env)
}

async fn value(variable: &EnvVar, pod: &Pod, objects: &Objects, env: &Env) -> Result<Option<String>, Fault> {
    let Some(source) = &variable.value_from else {
        return Ok(Some(env.expand(variable.value.as_deref().unwrap_or_default())));
    };
    let EnvVarSource { field_ref, config_map_key_ref, secret_key_ref, .. } = source;
    if let Some(field) = field_ref {
        return self::field(pod, &field.field_path).map(Some).ok_or_else(|| unsupported(variable, &field.field_path));
    }
    if let Some(key) = config_map_key_ref {
        let entries = present(objects.config_map(&key.name).await?, "configmap", &key.name, key.optional)?;
        return entry(entries, "configmap", &key.name, &key.key, key.optional);
    }
    if let Some(key) = secret_key_ref {
        let entries = present(objects.secret(&key.name).await?, "secret", &key.name, key.optional)?;
        return entry(entries, "secret", &key.name, &key.key, key.optional);
    }
    Err(unsupported(variable, "resourceFieldRef"))
}

fn present(found: Option<Entries>, kind: &str, name: &str, optional: Option<bool>) -> Result<Option<Entries>, Fault> {
    if found.is_none() && optional != Some(true) {
        return Err(config_error(format!("{kind} {name:?} not found")));
    }
    Ok(found)
}

fn entry(
    entries: Option<Entries>,
    kind: &str,
    name: &str,
    key: &str,
    optional: Option<bool>,
) -> Result<Option<String>, Fault> {
    match entries.and_then(|mut entries| entries.remove(key)) {
        Some(value) => Ok(Some(String::from_utf8_lossy(&value).into_owned())),
        None if optional == Some(true) => Ok(None),
        None => Err(config_error(format!("couldn't find key {key} in {kind} {name}"))),
    }
}

/// Returns the value of a field of the downward API, as far as it is supported here.
fn field(pod: &Pod, path: &str) -> Option<String> {
    let status = pod.status.as_ref();
    let spec = pod.spec.as_ref();
    let subscript = |map: Option<&std::collections::BTreeMap<String, String>>, prefix: &str| {
        let key = path.strip_prefix(prefix)?.strip_prefix("['")?.strip_suffix("']")?;
        Some(map.and_then(|map| map.get(key)).cloned().unwrap_or_default())
    };
    match path {
        "metadata.name" => pod.metadata.name.clone(),
        "metadata.namespace" => pod.metadata.namespace.clone(),
        "metadata.uid" => pod.metadata.uid.clone(),
        "spec.nodeName" => spec?.node_name.clone(),
        "spec.serviceAccountName" => Some(spec?.service_account_name.clone().unwrap_or_default()),
        "status.podIP" | "status.podIPs" => status?.pod_ip.clone(),
        "status.hostIP" | "status.hostIPs" => status?.host_ip.clone(),
        _ => subscript(pod.metadata.labels.as_ref(), "metadata.labels")
            .or_else(|| subscript(pod.metadata.annotations.as_ref(), "metadata.annotations")),
    }
}

fn unsupported(variable: &EnvVar, what: &str) -> Fault {
    config_error(format!("the sandbox cannot set {} from {what}", variable.name))
}

fn config_error(message: String) -> Fault {
    Fault::refused("CreateContainerConfigError", message)
}

#[cfg(test)]
mod tests;
