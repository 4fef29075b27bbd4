//! Reads the current `ConfigMap`s, Secrets and Services to which a pod refers.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::{Api, Client};

use super::fault::Fault;

/// Keys and contents of a `ConfigMap` or Secret.
pub(super) type Entries = BTreeMap<String, Vec<u8>>;

/// Reads objects of one namespace.
#[derive(Clone)]
pub(super) struct Objects {
    client: Client,
    namespace: String,
}

impl Objects {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    pub(super) async fn config_map(&self, name: &str) -> Result<Option<Entries>, Fault> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let map = api.get_opt(name).await.map_err(|e| unreadable("ConfigMap", name, &e))?;
        Ok(map.map(|map| {
            let text = map.data.unwrap_or_default().into_iter().map(|(k, v)| (k, v.into_bytes()));
            let binary = map.binary_data.unwrap_or_default().into_iter().map(|(k, v)| (k, v.0));
            text.chain(binary).collect()
        }))
    }

    pub(super) async fn secret(&self, name: &str) -> Result<Option<Entries>, Fault> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let secret = api.get_opt(name).await.map_err(|e| unreadable("Secret", name, &e))?;
        Ok(secret.map(|secret| secret.data.unwrap_or_default().into_iter().map(|(k, v)| (k, v.0)).collect()))
    }

    pub(super) async fn service(&self, name: &str) -> Result<Option<Service>, Fault> {
        let api = Api::<Service>::namespaced(self.client.clone(), &self.namespace);
        api.get_opt(name).await.map_err(|e| unreadable("Service", name, &e))
    }
}

/// Returns the fault for an object that can't be read. Whatever the error is, the pod waits and the node retries.
fn unreadable(kind: &str, name: &str, error: &kube::Error) -> Fault {
    Fault::NotYet(format!("cannot read {kind} {name:?}: {error}"))
}
