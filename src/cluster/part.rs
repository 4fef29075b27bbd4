//! One kept object and where in the API it belongs.

use std::borrow::Cow;

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
use serde_json::value::RawValue;

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
    pub(super) name: Cow<'a, str>,
}

/// What is read of it.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Named<'a>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

impl<'a> Part<'a> {
    pub(super) fn new(namespace: &'a str, object: &'a RawValue) -> Result<Self, Error> {
        let head: Head<'_> = serde_json::from_str(object.get()).map_err(|error| unreadable("object", &error))?;
        let kind = &head.kind;
        let resource = resource(kind).ok_or_else(|| unreadable(kind, &"it is of no kind that a driver has"))?;
        Ok(Self { resource, namespace, name: head.metadata.name })
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

    /// Sends it as it was kept; answers what the server did.
    pub(super) async fn post(&self, cluster: &Cluster, action: String, object: &RawValue) -> Result<String, Error> {
        let path = DynamicObject::url_path(&self.resource, Some(self.namespace));
        let request = Request::new(path).create(&PostParams::default(), object.get().into());
        let request = request.map_err(|error| sort(action.clone(), kube::Error::BuildRequest(error)))?;
        call(action, TIMEOUT, cluster.client.request_text(request)).await
    }

    /// The metadata of what has its name, if something has.
    pub(super) async fn there(&self, cluster: &Cluster) -> Result<Option<ObjectMeta>, Error> {
        let api = self.api(cluster);
        let there = call(format!("reading the {}", self.subject()), TIMEOUT, api.get_metadata_opt(&self.name)).await?;
        Ok(there.map(|there| there.metadata))
    }
}

fn resource(kind: &str) -> Option<ApiResource> {
    Some(match kind {
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

pub(super) fn unreadable(what: &str, why: &dyn std::fmt::Display) -> Error {
    Error::Refused {
        action: format!("reading the kept {what}"),
        code: 400,
        reason: "BadRequest".to_owned(),
        message: why.to_string(),
    }
}
