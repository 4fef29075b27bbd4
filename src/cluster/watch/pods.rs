//! The two requests of a list+watch, and their answers taken apart without decoding the pods.

use std::{io, pin::Pin, sync::Arc, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, Resource,
    api::{ListParams, Request, WatchParams},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    cluster::{Cluster, Error, error::call, labels},
    submission::Installation,
};

/// A page may be a few megabytes, and an API server that was just started reads it from etcd.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch is answered at once, with nothing in it; an API server may wait three seconds for its cache to be fresh.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// The pods of one scope.
pub(in crate::cluster) struct Pods {
    client: Client,
    path: String,
    selector: Arc<str>,
    installation: Option<Arc<Installation>>,
    /// What messages call them.
    name: String,
}

/// One page of a list.
#[derive(Deserialize)]
pub(in crate::cluster) struct Page<'a> {
    pub(in crate::cluster) metadata: PageMeta,
    #[serde(borrow)]
    pub(in crate::cluster) items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cluster) struct PageMeta {
    pub(super) resource_version: String,
    #[serde(rename = "continue", default)]
    pub(in crate::cluster) next: String,
}

/// One event of a watch.
#[derive(Deserialize)]
pub(super) struct Event<'a, Object> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) object: Object,
}

/// The version that a bookmark tells; the rest of its object is empty.
pub(super) fn bookmark(object: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Bookmark {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        resource_version: String,
    }
    serde_json::from_str(object).ok().map(|mark: Bookmark| mark.metadata.resource_version)
}

impl Pods {
    pub(super) fn new(cluster: &Cluster, namespace: Option<&str>) -> Self {
        Self {
            client: cluster.watching(namespace).clone(),
            path: Pod::url_path(&(), namespace),
            selector: cluster.selector.clone(),
            installation: cluster.installation.clone(),
            name: namespace.map_or_else(|| "our pods".to_owned(), |name| format!("our pods in the namespace {name}")),
        }
    }

    /// The same, of every installation on this cluster.
    pub(in crate::cluster) fn of_all_installations(cluster: &Cluster, namespace: Option<&str>) -> Self {
        Self { selector: labels::SUBMISSION_ID.into(), ..Self::new(cluster, namespace) }
    }

    /// The text of a [`Page`]: the first one, as of now, or the one that follows.
    pub(in crate::cluster) async fn page(&self, limit: u32, next: Option<&str>) -> Result<String, Error> {
        let mut how = ListParams::default().labels(&self.selector).limit(limit);
        how.continue_token = next.map(str::to_owned);
        call(format!("listing {}", self.name), PAGE_TIMEOUT, async {
            let request = Request::new(&self.path).list(&how).map_err(kube::Error::BuildRequest)?;
            self.client.request_text(request).await
        })
        .await
    }

    /// The version of the whole cluster, from etcd itself.
    pub(super) async fn newest(&self) -> Result<String, Error> {
        let text = self.page(1, None).await?;
        let page: Page<'_> = serde_json::from_str(&text).map_err(|error| Error::Unavailable {
            action: format!("reading a list of {}", self.name),
            source: Box::new(error),
        })?;
        Ok(page.metadata.resource_version)
    }

    pub(super) fn installation(&self) -> Option<&Installation> {
        self.installation.as_deref()
    }

    /// What happened since that version and happens in the next `seconds`.
    pub(super) async fn watch(&self, version: &str, seconds: u32) -> Result<Lines, Error> {
        let how = WatchParams::default().labels(&self.selector).timeout(seconds);
        let body = call(format!("watching {}", self.name), OPEN_TIMEOUT, async {
            let request = Request::new(&self.path).watch(&how, version).map_err(kube::Error::BuildRequest)?;
            self.client.request_stream(request).await
        });
        Ok(Lines { body: Box::pin(body.await?), line: Vec::new() })
    }
}

/// The lines of a watch: one event each.
pub(super) struct Lines {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    line: Vec<u8>,
}

impl Lines {
    /// The next whole line, `None` at the end. May be dropped half-way and asked again.
    pub(super) async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.line.ends_with(b"\n") {
            self.line.clear();
        }
        self.body.read_until(b'\n', &mut self.line).await?;
        // Half a line is the end of a connection, not an event.
        Ok(self.line.ends_with(b"\n").then_some(&self.line))
    }
}
