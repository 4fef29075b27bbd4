//! Reads what `sparkgate doctor` compares with the needs of a gateway.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use http::{Request, header::DATE};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{Api, Client, ResourceExt, api::ListParams, client::Body};
use serde::Deserialize;

use super::{
    call::call,
    cluster::Cluster,
    error::Error,
    labels,
    watch::pods::{Page, Pods},
};

const TIMEOUT: Duration = Duration::from_secs(10);
const PAGE: u32 = 500;

/// An API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiServer {
    /// Its version, such as `v1.36.2`.
    pub version: String,
    /// Major and minor version; `None` if they can't be read from the version.
    pub release: Option<(u32, u32)>,
    /// Its clock, to the second, and this machine's at that moment.
    pub clock: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// A pod with our labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedPod {
    pub namespace: String,
    pub name: String,
    /// The submission in its label.
    pub submission: String,
    /// The installation in its label.
    pub installation: Option<String>,
    /// Whether our finalizer holds it.
    pub is_held: bool,
}

/// A resource of a quota that is limited: what is used, and what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaUse {
    pub quota: String,
    pub resource: String,
    pub used: String,
    pub hard: String,
}

#[derive(Deserialize)]
struct Marked {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    namespace: String,
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    finalizers: Vec<String>,
}

impl Cluster {
    /// Returns version and clock of the API server.
    ///
    /// # Errors
    /// The API server doesn't answer, or doesn't accept the account.
    pub async fn api_server(&self) -> Result<ApiServer, Error> {
        let action = "reading the version of the API server";
        let version = call(action, TIMEOUT, self.client.apiserver_version()).await?;
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
        let release = digits(&version.major).zip(digits(&version.minor));
        let clock = call(action, TIMEOUT, clock(&self.client)).await?;
        Ok(ApiServer { version: version.git_version, release, clock })
    }

    /// Returns all pods with our labels in the watched namespaces, those of every installation.
    ///
    /// # Errors
    /// The pods can't be listed.
    pub async fn marked_pods(&self) -> Result<Vec<MarkedPod>, Error> {
        let mut found = Vec::new();
        if self.namespaces.is_empty() {
            self.marked_in(None, &mut found).await?;
        }
        for namespace in self.namespaces.iter() {
            self.marked_in(Some(namespace), &mut found).await?;
        }
        Ok(found)
    }

    async fn marked_in(&self, namespace: Option<&str>, found: &mut Vec<MarkedPod>) -> Result<(), Error> {
        let pods = Pods::for_all_installations(self, namespace);
        let mut next: Option<String> = None;
        loop {
            let text = pods.page(PAGE, next.as_deref()).await?;
            let page: Page<'_> = serde_json::from_str(&text).map_err(|error| Error::Unavailable {
                action: "reading a list of driver pods".to_owned(),
                source: Box::new(error),
            })?;
            let read = page.items.iter().flatten().filter_map(|pod| serde_json::from_str::<Marked>(pod.get()).ok());
            found.extend(read.map(|pod| MarkedPod::from(pod.metadata)));
            next = Some(page.metadata.next).filter(|next| !next.is_empty());
            if next.is_none() {
                return Ok(());
            }
        }
    }

    /// Returns the resources that the quotas of a namespace limit.
    ///
    /// # Errors
    /// [`Error::Denied`] if the account may not list them; or the API server doesn't answer.
    pub async fn quotas(&self, namespace: &str) -> Result<Vec<QuotaUse>, Error> {
        let quotas: Api<ResourceQuota> = Api::namespaced(self.client.clone(), namespace);
        let how = ListParams::default();
        let action = format!("listing the quotas of the namespace {namespace}");
        let all = call(action, TIMEOUT, quotas.list(&how)).await?;
        let mut found = Vec::new();
        for quota in all {
            let name = quota.name_any();
            let status = quota.status.unwrap_or_default();
            let used = status.used.unwrap_or_default();
            for (resource, hard) in status.hard.unwrap_or_default() {
                let used = used.get(&resource).map_or_else(|| "0".to_owned(), |used| used.0.clone());
                found.push(QuotaUse { quota: name.clone(), resource, used, hard: hard.0 });
            }
        }
        Ok(found)
    }
}

impl From<Metadata> for MarkedPod {
    fn from(mut pod: Metadata) -> Self {
        Self {
            namespace: pod.namespace,
            name: pod.name,
            submission: pod.labels.remove(labels::SUBMISSION_ID).unwrap_or_default(),
            installation: pod.labels.remove(labels::INSTANCE),
            is_held: pod.finalizers.iter().any(|name| name == labels::FINALIZER),
        }
    }
}

/// Returns the time in a reply (RFC 9110, `Date`), and the middle of the time that the call took here. Every reply has it.
async fn clock(client: &Client) -> kube::Result<Option<(DateTime<Utc>, DateTime<Utc>)>> {
    let request = Request::get("/version").body(Body::empty()).map_err(kube::Error::HttpError)?;
    let before = Utc::now();
    let reply = client.send(request).await?;
    let here = before + (Utc::now() - before) / 2;
    let date = reply.headers().get(DATE).and_then(|date| date.to_str().ok());
    let there = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
    Ok(there.map(|there| (there.with_timezone(&Utc), here)))
}
