//! `sparkgate sandbox`: runs the simulated cluster, or only its node for a cluster that has none.

mod namespaces;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use secrecy::ExposeSecret;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    serve::{listener::listen, signals::Signals},
    settings::Sandbox,
};
use sparkgate_sandbox::{apiserver, node};

pub(super) use namespaces::create as create_namespaces;

/// Returns how a kubeconfig reaches its cluster.
async fn config_of(path: &Path) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("reading {}", path.display()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.with_context(|| format!("using {}", path.display()))
}

/// Runs the sandbox until SIGINT or SIGTERM, then ends all pods.
///
/// # Errors
/// An address or a directory can't be used, the cluster can't be reached, or a part ended by itself.
pub(super) async fn sandbox(settings: Sandbox) -> anyhow::Result<()> {
    settings.check()?;
    let signals = Signals::listen()?;
    let (api_stop, node_stop) = (CancellationToken::new(), CancellationToken::new());
    let mut parts: JoinSet<anyhow::Result<()>> = JoinSet::new();
    let config = match &settings.kubeconfig {
        Some(path) => config_of(path).await?,
        None => {
            let listener = listen(settings.listen).await?;
            let url = format!("http://{}", listener.local_addr()?);
            tracing::info!("Kubernetes API on {url}");
            let token = settings.token_file.as_ref().map(|path| {
                let token = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
                anyhow::Ok(token.trim().to_owned())
            });
            let (token, stop) = (token.transpose()?, api_stop.clone());
            let mut config = Config::new(url.parse().context("making the API's URL")?);
            config.auth_info.token = token.clone().map(Into::into);
            parts.spawn(async move {
                apiserver::serve(listener, token.as_deref(), stop).await.context("the sandbox's API server")
            });
            config
        }
    };
    parts.spawn(node::run(node_config(config, &settings).await?, node_stop.clone()));
    let ended = tokio::select! {
        ended = parts.join_next() => Some(ended),
        () = signals.received() => None,
    };
    // The node stops first, because it reports the end of its pods to the API server.
    node_stop.cancel();
    if let Some(ended) = ended {
        ended.context("a part of the sandbox ended")???;
    }
    let of_its_own = settings.kubeconfig.is_none();
    if of_its_own {
        // The node is the part that ends now.
        let _ = tokio::time::timeout(Duration::from_secs(40), parts.join_next()).await;
    }
    api_stop.cancel();
    while tokio::time::timeout(Duration::from_secs(5), parts.join_next()).await.is_ok_and(|part| part.is_some()) {}
    Ok(())
}

async fn node_config(mut config: Config, settings: &Sandbox) -> anyhow::Result<node::NodeConfig> {
    let spark = node::Spark::find(settings.spark_home.as_deref()).await?;
    let api_url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let token = config.auth_info.token.as_ref().map(|token| token.expose_secret().to_owned());
    config.default_retry = false;
    let ca_file = write_ca(&config, settings)?;
    Ok(node::NodeConfig {
        client: Client::try_from(config).context("making a client for the Kubernetes API")?,
        api_url,
        token,
        ca_file,
        name: "sandbox".to_owned(),
        spark,
        dir: settings.dir.clone(),
    })
}

/// Writes the cluster's certificate authority to the PEM file that drivers need. Returns `None` if the kubeconfig has none.
fn write_ca(config: &Config, settings: &Sandbox) -> anyhow::Result<Option<PathBuf>> {
    let Some(certificates) = &config.root_cert else { return Ok(None) };
    let pem = |der: &Vec<u8>| {
        let lines = STANDARD.encode(der);
        let lines: Vec<String> =
            lines.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    };
    let text: String = certificates.iter().map(pem).collect();
    fs::create_dir_all(&settings.dir).with_context(|| format!("making the directory {}", settings.dir.display()))?;
    let path = settings.dir.join("ca.crt");
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(Some(path))
}
