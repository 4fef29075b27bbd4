//! A proxy to the API server without TLS, to separate the gateway's own work from encryption.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use crate::{load::kubernetes::Client, servers::kubeconfig};

/// The proxy. It ends when this is dropped.
pub(super) struct PlainProxy {
    /// The directory of the kubeconfig that points here.
    directory: TempDir,
    task: AbortHandle,
}

impl PlainProxy {
    pub(super) async fn start(client: Client) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let directory = tempfile::tempdir()?;
        let server = format!("http://{}", listener.local_addr()?);
        kubeconfig::write(directory.path(), &server, None, "none")?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, client.clone()));
            }
        });
        Ok(Self { directory, task: task.abort_handle() })
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join(kubeconfig::FILE)
    }
}

impl Drop for PlainProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, client: Client) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let forward = service_fn(move |request: Request<Incoming>| {
        let client = client.clone();
        async move { forward(&client, request).await }
    });
    Ok(http1::Builder::new().serve_connection(TokioIo::new(stream), forward).await?)
}

async fn forward(client: &Client, request: Request<Incoming>) -> anyhow::Result<Response<Incoming>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    client.forward(parts, body).await
}
