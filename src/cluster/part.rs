//! One kept object and where in the API it belongs.

use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
        networking::v1::NetworkPolicy,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, PostParams},
    core::Request,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Cluster, Error,
    create::TIMEOUT,
    error::{call, sort},
};
use crate::spark::PodGroup;

/// An object that is to be created, or was.
pub(super) struct Part<'a> {
    resource: ApiResource,
    namespace: &'a str,
    pub(super) name: &'a str,
}

/// What is read of the answer to a create. It repeats the object, and most of it is what the server adds to every field.
#[derive(Debug, Deserialize)]
pub(super) struct Created {
    pub(super) metadata: Metadata,
}

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) uid: String,
}

impl<'a> Part<'a> {
    pub(super) fn new(namespace: &'a str, object: &'a Value) -> Result<Self, Error> {
        let resource = resource(object).ok_or_else(|| unreadable(object, "it is of no kind that a driver has"))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Ok(Self { resource, namespace, name })
    }

    /// What messages call it.
    pub(super) fn subject(&self) -> String {
        format!("{} {}", self.resource.kind, self.place())
    }

    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    pub(super) fn api(&self, cluster: &Cluster) -> Api<DynamicObject> {
        Api::namespaced_with(cluster.client.clone(), self.namespace, &self.resource)
    }

    /// Sends it as it was kept.
    pub(super) async fn post(&self, cluster: &Cluster, action: String, object: &Value) -> Result<Created, Error> {
        let body = serde_json::to_vec(object).map_err(|error| unreadable(object, &error.to_string()))?;
        let path = DynamicObject::url_path(&self.resource, Some(self.namespace));
        let request = Request::new(path).create(&PostParams::default(), body).map_err(kube::Error::BuildRequest);
        let request = request.map_err(|error| sort(action.clone(), error))?;
        call(action, TIMEOUT, cluster.client.request(request)).await
    }

    /// The metadata of what has its name, if something has.
    pub(super) async fn there(&self, cluster: &Cluster) -> Result<Option<ObjectMeta>, Error> {
        let api = self.api(cluster);
        let there = call(format!("reading the {}", self.subject()), TIMEOUT, api.get_metadata_opt(self.name)).await?;
        Ok(there.map(|there| there.metadata))
    }
}

fn resource(object: &Value) -> Option<ApiResource> {
    Some(match object["kind"].as_str()? {
        "Pod" => ApiResource::erase::<Pod>(&()),
        "Service" => ApiResource::erase::<Service>(&()),
        "NetworkPolicy" => ApiResource::erase::<NetworkPolicy>(&()),
        "Secret" => ApiResource::erase::<Secret>(&()),
        "ConfigMap" => ApiResource::erase::<ConfigMap>(&()),
        "PersistentVolumeClaim" => ApiResource::erase::<PersistentVolumeClaim>(&()),
        "PodGroup" => ApiResource::erase::<PodGroup>(&()),
        _ => return None,
    })
}

fn unreadable(object: &Value, why: &str) -> Error {
    Error::Refused {
        action: format!("reading the kept {}", object["kind"].as_str().unwrap_or("object")),
        code: 400,
        reason: "BadRequest".to_owned(),
        message: why.to_owned(),
    }
}
