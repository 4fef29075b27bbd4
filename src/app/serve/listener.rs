//! The sockets on which this process listens.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::TcpListener;

pub(in crate::app) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("listening on {address}: is the address already in use?"))
}
