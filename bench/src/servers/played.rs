//! A played Kubernetes API server: it has any number of running driver pods, answers lists and watches of them as
//! kube-apiserver does, and stores nothing. It allows measurements with more pods than this machine can hold.

mod answer;
mod pods;

use std::{net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};

use self::{answer::answer, pods::Pods};
use super::{Database, kubeconfig};

/// The longest time until all pods are listed and processed.
const RELIST: Duration = Duration::from_secs(120);

/// The server. It ends when this is dropped. Its pods are those of [`super::rows::live`] from number 1 on, under their
/// own uids.
pub(crate) struct Played {
    directory: TempDir,
    state: Arc<State>,
    server: JoinHandle<()>,
}

struct State {
    pods: Pods,
    /// The version of the newest list. Watches of an older version end.
    version: watch::Sender<u64>,
}

impl Played {
    pub(crate) async fn start(pods: usize) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("creating a directory")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listening")?;
        let server = format!("http://{}", listener.local_addr()?);
        kubeconfig::write(directory.path(), &server, None, "none")?;
        let state = Arc::new(State { pods: Pods::new(pods)?, version: watch::Sender::new(1_000_000) });
        let server = tokio::spawn(serve(listener, state.clone()));
        Ok(Self { directory, state, server })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join(kubeconfig::FILE)
    }

    /// Ends the watch with 410, so that the gateway has to list again. Returns how long it took until the list was
    /// processed and the new position was stored.
    pub(crate) async fn relist(&self, database: &Database) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.state.version.send_modify(|version| *version += 1000);
        let version = self.state.version.borrow().to_string();
        let mut connection = database.connect().await?;
        while begun.elapsed() < RELIST {
            sleep(Duration::from_millis(20)).await;
            let at = sqlx::query_scalar("SELECT resource_version FROM watch_positions").fetch_optional(&mut connection);
            if at.await?.is_some_and(|at: String| at == version) {
                return Ok(begun.elapsed());
            }
        }
        bail!("the gateway hasn't listed the pods after {RELIST:?}")
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(state.clone(), request));
            let _ =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
