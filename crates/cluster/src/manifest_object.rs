//! One stored object and its resource in the API.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

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
    answer::{nothing_of_kubernetes, sort},
    call::{call, find},
    cluster::Cluster,
    error::Error,
};
use sparkgate_spark::PodGroup;

/// Timeout for a write. It is longer than the API server works on a request (60 s): a webhook may take 30 s, and several
/// webhooks are called one after the other. A dead connection is detected long before that, by its silence.
pub(super) const TIMEOUT: Duration = Duration::from_secs(65);

/// Timeout for the list of APIs.
const LIST: Duration = Duration::from_secs(5);

/// The `Accept` header that asks for metadata only; a server that doesn't know that form may send the whole object (Kubernetes
/// API, "Retrieving only the metadata").
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json");

/// How much of a created object the server returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Whole,
    Metadata,
}

/// An object that is to be created, or that has been.
pub(super) struct ManifestObject<'a> {
    resource: ApiResource,
    namespace: &'a str,
    pub(super) name: String,
}

/// The part of the response to a creation that is read.
#[derive(Deserialize)]
struct Created {
    metadata: CreatedMetadata,
}

#[derive(Deserialize)]
struct CreatedMetadata {
    uid: String,
}

/// The members of a JSON object by name, as raw JSON.
pub(super) type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

impl<'a> ManifestObject<'a> {
    pub(super) fn new(namespace: &'a str, object: &'a RawValue) -> Result<Self, Error> {
        Ok(Self::with_members(namespace, object)?.0)
    }

    /// Also returns the object's members and those of its metadata: the text is long, so it is parsed only once.
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
        let resource = resource(&kind).ok_or_else(|| unreadable(&kind, &"a driver has no objects of this kind"))?;
        Ok((Self { resource, namespace, name }, members, metadata))
    }

    /// Returns the name of the object in messages.
    pub(super) fn subject(&self) -> String {
        format!("{} {}", self.resource.kind, self.place())
    }

    pub(super) fn is_secret(&self) -> bool {
        self.resource.kind == "Secret"
    }

    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    pub(super) fn api(&self, cluster: &Cluster) -> Api<DynamicObject> {
        Api::namespaced_with(cluster.client.clone(), self.namespace, &self.resource)
    }

    /// Sends the object as it was stored, and returns at least that part of the object that the server created.
    pub(super) async fn post(
        &self,
        cluster: &Cluster,
        action: String,
        object: &RawValue,
        part: Answer,
    ) -> Result<String, Error> {
        let path = DynamicObject::url_path(&self.resource, Some(self.namespace));
        let request = Request::new(path).create(&PostParams::default(), object.get().into());
        let mut request = request.map_err(|error| sort(action.clone(), kube::Error::BuildRequest(error)))?;
        if part == Answer::Metadata {
            request.headers_mut().insert(ACCEPT, METADATA);
        }
        let answer = call(action.clone(), TIMEOUT, cluster.client.request_text(request)).await;
        let answer = self.served(cluster, answer).await?;
        // An answer without a uid isn't the API server's, and then the object may not exist. Who takes it whole reads it anyway.
        let is_object = |answer: &str| {
            serde_json::from_str::<Created>(answer).is_ok_and(|created| !created.metadata.uid.is_empty())
        };
        if part == Answer::Metadata && !is_object(&answer) {
            return Err(nothing_of_kubernetes(action));
        }
        Ok(answer)
    }

    /// Returns the metadata of the existing object of this name, if there is one.
    pub(super) async fn there(&self, cluster: &Cluster) -> Result<Option<ObjectMeta>, Error> {
        let api = self.api(cluster);
        let action = format!("reading the {}", self.subject());
        let there = find(action, TIMEOUT, &self.name, api.get_metadata(&self.name)).await;
        match self.served(cluster, there).await {
            Err(Error::NotFound { name, .. }) if name == self.name => Ok(None),
            there => Ok(there?.map(|there| there.metadata)),
        }
    }

    /// Returns the answer to a call, and [`Error::NotFound`] in place of a page if the cluster doesn't serve objects of this kind: an
    /// API server answers with a page then, too, so the list of what it serves decides.
    pub(super) async fn served<T>(&self, cluster: &Cluster, answer: Result<T, Error>) -> Result<T, Error> {
        let ApiResource { group, version, kind, .. } = &self.resource;
        let Err(error) = answer else { return answer };
        let is_extension = group.contains('.') && !group.ends_with(".k8s.io");
        if !(error.is_page() && is_extension) {
            return Err(error);
        }
        let Ok(served) = call("listing the APIs", LIST, cluster.client.list_api_groups()).await else {
            return Err(error);
        };
        let mut versions = served.groups.iter().filter(|served| served.name == *group).flat_map(|of| &of.versions);
        if served.groups.is_empty() || versions.any(|served| served.version == *version) {
            return Err(error);
        }
        let message = format!("the cluster doesn't serve {kind} of {group}/{version}: is its operator installed?");
        Err(Error::NotFound { action: format!("using the {}", self.subject()), name: self.name.clone(), message })
    }
}

/// Parses a member, if there is one of that name.
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
        action: format!("reading the stored {what}"),
        code: 400,
        reason: "BadRequest".to_owned(),
        message: why.to_string(),
    }
}
