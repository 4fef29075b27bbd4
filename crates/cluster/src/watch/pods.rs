//! The two requests of a list+watch. Their answers are split without decoding the pods.

use std::{io, pin::Pin, sync::Arc, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, Resource,
    api::{ListParams, Request, WatchParams},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{call::call, cluster::Cluster, error::Error, labels};
use sparkgate_submission::Installation;

/// Timeout for a page: it may have a few megabytes, and an API server that has just started reads it from etcd.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for the response headers of a watch: they come at once, but an API server may wait three seconds for its cache to be
/// fresh.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// A number that no attempt has.
const NO_ATTEMPT: i32 = 0;

/// The pods of one scope.
pub(crate) struct Pods {
    client: Client,
    path: String,
    selector: Arc<str>,
    installation: Option<Arc<Installation>>,
    /// The name of these pods in messages.
    name: String,
}

/// One page of a list.
#[derive(Deserialize)]
pub(crate) struct Page<'a> {
    pub(crate) metadata: PageMeta,
    #[serde(borrow)]
    pub(crate) items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMeta {
    pub(super) resource_version: String,
    #[serde(rename = "continue", default)]
    pub(crate) next: String,
}

/// One event of a watch.
#[derive(Deserialize)]
pub(super) struct Event<'a, Object> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) object: Object,
}

/// Returns the resource version of a bookmark; the rest of its object is empty.
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

    /// Creates the same scope for the pods of every installation on this cluster.
    pub(crate) fn for_all_installations(cluster: &Cluster, namespace: Option<&str>) -> Self {
        Self { selector: labels::SUBMISSION_ID.into(), ..Self::new(cluster, namespace) }
    }

    /// Returns the text of a [`Page`]: the first page, as of now, or the page that `next` continues with.
    pub(crate) async fn page(&self, limit: u32, next: Option<&str>) -> Result<String, Error> {
        let mut how = ListParams::default().labels(&self.selector).limit(limit);
        how.continue_token = next.map(str::to_owned);
        self.list(&how).await
    }

    /// Returns the text of a [`Page`] of no pod, as of any version. Without a version, an API server may read all pods of etcd up to the
    /// first one that matches; with any, it ignores the limit, so that the selector has to leave out all.
    pub(super) async fn none(&self) -> Result<String, Error> {
        let none = format!("{},{}={NO_ATTEMPT}", self.selector, labels::ATTEMPT);
        self.list(&ListParams::default().labels(&none).match_any()).await
    }

    async fn list(&self, how: &ListParams) -> Result<String, Error> {
        call(format!("listing {}", self.name), PAGE_TIMEOUT, async {
            let request = Request::new(&self.path).list(how).map_err(kube::Error::BuildRequest)?;
            self.client.request_text(request).await
        })
        .await
    }

    /// Returns the resource version of the whole cluster, from etcd itself.
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

    /// Watches what happened since that version and what happens in the next `seconds`.
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
    /// Returns the next whole line, `None` at the end. Safe to cancel: the future may be dropped half-way and called again.
    pub(super) async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.line.ends_with(b"\n") {
            self.line.clear();
        }
        self.body.read_until(b'\n', &mut self.line).await?;
        // An incomplete line means that the connection ended; it is not an event.
        Ok(self.line.ends_with(b"\n").then_some(&self.line))
    }
}
