//! Connects to the cluster at start.

use std::{path::PathBuf, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Config,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::time::{Instant, sleep};

use super::{
    answer::sort,
    call::in_time,
    cluster::{Cluster, WATCHES_PER_CONNECTION},
    error::Error,
    http,
};
use sparkgate_submission::error_chain;

/// Connections for logs; each is opened when it is needed.
const LOG_CONNECTIONS: usize = 4;
/// The same for logs that are stored: 75 streams on each, if there are as many as the gateway permits.
const STORED_LOG_CONNECTIONS: usize = 8;
/// Connections for all other calls; each is opened when it is needed. There may be two hundred launches at once, and half of
/// them may wait for a webhook.
const CONNECTIONS: usize = 3;

/// How long a denial is retried: an API server that is starting denies everything until its RBAC caches are filled, and the
/// account's Role may be created a moment after the gateway.
const DENIED: Duration = Duration::from_secs(10);
const LISTING: &str = "listing our pods";
const PAUSE: Duration = Duration::from_millis(500);

/// The connection settings of the cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterSettings {
    /// A kubeconfig file. Without one the usual places are tried: `KUBECONFIG`, `~/.kube/config`, and the service account
    /// of the pod in which the gateway runs.
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    /// The namespaces in which drivers may run; empty means all.
    pub namespaces: Vec<String>,
}

/// The cluster can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(
        "no Kubernetes cluster is configured: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account"
    )]
    Config(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("can't create a client for the Kubernetes API at {url}")]
    Client { url: String, source: kube::Error },
    #[error("can't use the Kubernetes API at {url}: is it reachable, and may this account list pods {place}?")]
    Unusable { url: String, place: String, source: Error },
}

impl Cluster {
    /// Reads the configuration, creates a client, and checks it with the same list request that the watch will use. An API
    /// server that doesn't answer is not an error: it may come back, and submissions can be accepted meanwhile.
    ///
    /// # Errors
    /// [`ConnectError`], whose message says what to check.
    pub async fn connect(settings: &ClusterSettings) -> Result<Self, ConnectError> {
        let (cluster, url) = Self::open(settings).await?;
        let deadline = Instant::now() + DENIED;
        for (namespace, pods) in cluster.watched_pods::<Pod>() {
            let tried = match try_list(&pods, &cluster.selector, deadline).await {
                // Each later call retries it.
                Err(error) if error.is_outage() && !error.is_unauthorized() => {
                    tracing::warn!("the Kubernetes API at {url} doesn't answer yet: {}", error_chain(&error));
                    return Ok(cluster);
                }
                tried => tried,
            };
            tried.map_err(|source| {
                let place =
                    namespace.map_or_else(|| "in all namespaces".to_owned(), |name| format!("in the namespace {name}"));
                ConnectError::Unusable { url: url.clone(), place, source }
            })?;
        }
        Ok(cluster)
    }

    /// Reads the configuration and creates a client, which has sent nothing yet. Returns the URL of the API server with it.
    ///
    /// # Errors
    /// [`ConnectError`]: the configuration can't be used.
    pub async fn open(settings: &ClusterSettings) -> Result<(Self, String), ConnectError> {
        let config = config(settings).await?;
        let url = config.cluster_url.to_string();
        let connections = settings.namespaces.len().div_ceil(WATCHES_PER_CONNECTION).max(1);
        let clients = || -> kube::Result<_> {
            let watching = (0..connections).map(|_| http::client(&config, 1)).collect::<kube::Result<_>>()?;
            let reading = (0..LOG_CONNECTIONS).map(|_| http::client(&config, 1)).collect::<kube::Result<_>>()?;
            let storing = (0..STORED_LOG_CONNECTIONS).map(|_| http::client(&config, 1)).collect::<kube::Result<_>>()?;
            Ok((http::client(&config, CONNECTIONS)?, watching, reading, storing))
        };
        let (client, watching, reading, storing) =
            clients().map_err(|source| ConnectError::Client { url: url.clone(), source })?;
        Ok((Self { watching, reading, storing, ..Self::new(client, &settings.namespaces) }, url))
    }

    /// Returns the pods of each watched namespace; `None` means all namespaces.
    pub(super) fn watched_pods<K>(&self) -> Vec<(Option<String>, Api<K>)>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        if self.namespaces.is_empty() {
            return vec![(None, Api::all(self.client.clone()))];
        }
        let named = |name: &String| (Some(name.clone()), Api::namespaced(self.client.clone(), name));
        self.namespaces.iter().map(named).collect()
    }
}

/// Lists one pod. A denial is retried until `deadline`.
async fn try_list(pods: &Api<Pod>, selector: &str, deadline: Instant) -> Result<(), Error> {
    let one = ListParams::default().labels(selector).limit(1);
    loop {
        match in_time(LISTING, Duration::from_secs(10), pods.list(&one)).await? {
            Err(kube::Error::Api(status)) if status.code == 403 && Instant::now() + PAUSE < deadline => {
                tracing::warn!(retry_in = ?PAUSE, "the Kubernetes API denies the list of pods: {}", status.message);
            }
            answer => return answer.map(drop).map_err(|error| sort(LISTING.to_owned(), error)),
        }
        sleep(PAUSE).await;
    }
}

async fn config(settings: &ClusterSettings) -> Result<Config, ConnectError> {
    let options = KubeConfigOptions { context: settings.context.clone(), ..KubeConfigOptions::default() };
    let invalid = |source| ConnectError::Config(Box::new(source));
    let Some(path) = &settings.kubeconfig else {
        let mut config = match settings.context {
            Some(_) => Config::from_kubeconfig(&options).await.map_err(invalid)?,
            None => Config::infer().await.map_err(|source| ConnectError::Config(Box::new(source)))?,
        };
        // Inside of a cluster, kube knows the file.
        if config.root_cert_file.is_none() {
            let file = Kubeconfig::read().ok();
            config.root_cert_file = file.and_then(|file| authority(&file, settings.context.as_deref()));
        }
        return Ok(config);
    };
    let file = Kubeconfig::read_from(path).map_err(invalid)?;
    let authority = authority(&file, settings.context.as_deref());
    let mut config = Config::from_custom_kubeconfig(file, &options).await.map_err(invalid)?;
    config.root_cert_file = authority;
    Ok(config)
}

/// Returns the file of the certificate authority of a context, by default of the current one. kube reads it again each minute, so that a new
/// authority needs no restart; it does so by itself only for that of a service account.
fn authority(file: &Kubeconfig, context: Option<&str>) -> Option<PathBuf> {
    let wanted = context.or(file.current_context.as_deref())?;
    let context = file.contexts.iter().find(|context| context.name == wanted)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|cluster| cluster.name == context.cluster)?.cluster.as_ref()?;
    // The content has precedence over the file.
    match cluster.certificate_authority_data {
        Some(_) => None,
        None => cluster.certificate_authority.as_ref().map(PathBuf::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
apiVersion: v1
kind: Config
current-context: a
contexts:
- {name: a, context: {cluster: by-file, user: u}}
- {name: b, context: {cluster: by-content, user: u}}
clusters:
- {name: by-file, cluster: {server: 'https://127.0.0.1:6443', certificate-authority: /etc/ca.crt}}
- name: by-content
  cluster: {server: 'https://127.0.0.1:6443', certificate-authority: /etc/ca.crt, certificate-authority-data: QQ==}
users: [{name: u, user: {}}]
";

    #[test]
    fn the_file_of_an_authority_is_read_again_and_its_content_is_not() {
        let file = Kubeconfig::from_yaml(FILE).unwrap();
        assert_eq!(authority(&file, None), Some(PathBuf::from("/etc/ca.crt")));
        assert_eq!(authority(&file, Some("a")), Some(PathBuf::from("/etc/ca.crt")));
        assert_eq!(authority(&file, Some("b")), None);
        assert_eq!(authority(&file, Some("c")), None);
    }
}
