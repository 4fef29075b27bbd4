//! One kept object and where in the API it belongs.

use std::{borrow::Cow, collections::BTreeMap};

use http::{HeaderValue, header::ACCEPT};
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
use serde::{Deserialize, de::Error as _};
use serde_json::value::RawValue;

use super::{
    Cluster, Error,
    create::TIMEOUT,
    error::{call, sort},
};
use crate::spark::PodGroup;

/// Only metadata is wanted of an answer, and whoever doesn't know that form may send all (Kubernetes API, "Retrieving only the
/// metadata").
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json");

/// An object that is to be created, or was.
pub(super) struct Part<'a> {
    resource: ApiResource,
    namespace: &'a str,
    pub(super) name: String,
}

/// The members of an object by name, as they are written.
pub(super) type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

impl<'a> Part<'a> {
    pub(super) fn new(namespace: &'a str, object: &'a RawValue) -> Result<Self, Error> {
        Ok(Self::with_members(namespace, object)?.0)
    }

    /// Also the object's members, and those of its metadata: its text is long, and is gone through once.
    pub(super) fn with_members(
        namespace: &'a str,
        object: &'a RawValue,
    ) -> Result<(Self, Members<'a>, Members<'a>), Error> {
        let apart = || -> serde_json::Result<_> {
            let members: Members<'a> = serde_json::from_str(object.get())?;
            let missing = serde_json::Error::missing_field;
            let metadata: Members<'a> = read(&members, "metadata")?.ok_or_else(|| missing("metadata"))?;
            let kind: String = read(&members, "kind")?.ok_or_else(|| missing("kind"))?;
            let name: Option<String> = read(&metadata, "name")?;
            Ok((kind, name.unwrap_or_default(), members, metadata))
        };
        let (kind, name, members, metadata) = apart().map_err(|error| unreadable("object", &error))?;
        let resource = resource(&kind).ok_or_else(|| unreadable(&kind, &"it is of no kind that a driver has"))?;
        Ok((Self { resource, namespace, name }, members, metadata))
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

    /// Sends it as it was kept; answers the metadata of what the server made of it, at least.
    pub(super) async fn post(&self, cluster: &Cluster, action: String, object: &RawValue) -> Result<String, Error> {
        let path = DynamicObject::url_path(&self.resource, Some(self.namespace));
        let request = Request::new(path).create(&PostParams::default(), object.get().into());
        let mut request = request.map_err(|error| sort(action.clone(), kube::Error::BuildRequest(error)))?;
        request.headers_mut().insert(ACCEPT, METADATA);
        call(action, TIMEOUT, cluster.client.request_text(request)).await
    }

    /// The metadata of what has its name, if something has.
    pub(super) async fn there(&self, cluster: &Cluster) -> Result<Option<ObjectMeta>, Error> {
        let api = self.api(cluster);
        let there = call(format!("reading the {}", self.subject()), TIMEOUT, api.get_metadata_opt(&self.name)).await?;
        Ok(there.map(|there| there.metadata))
    }
}

/// What a member says.
fn read<'a, T: Deserialize<'a>>(members: &Members<'a>, name: &str) -> serde_json::Result<Option<T>> {
    members.get(name).map(|member| serde_json::from_str(member.get())).transpose()
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
