//! `sparkgate healthcheck`: asks a gateway whether it is ready, for container runtimes: the image has no shell and no curl.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, bail};
use reqwest::{Client, redirect::Policy};
use rustls::crypto::ring;

use super::settings::Healthcheck;

/// Shorter than the time limits that container runtimes usually have for a health check.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns what the gateway answers if it is ready.
///
/// # Errors
/// The gateway can't be reached, or it isn't ready; the error has the reason that it gives.
pub(super) async fn healthcheck(settings: &Healthcheck) -> anyhow::Result<String> {
    let url = format!("http://{}/readyz", reachable(settings.address()));
    // Fails if another one is installed already, which serves as well.
    let _ = ring::default_provider().install_default();
    let client = Client::builder().no_proxy().tls_certs_only([]).redirect(Policy::none()).timeout(TIMEOUT);
    let client = client.build().context("creating an HTTP client")?;
    let answer = client.get(&url).send().await.with_context(|| format!("asking {url}"))?;
    let status = answer.status();
    let text = answer.text().await.with_context(|| format!("reading the answer of {url}"))?;
    if !status.is_success() {
        bail!("{url} answered with {status}: {text}");
    }
    Ok(text)
}

/// Replaces the address on which a server listens on all interfaces by that of loopback.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use axum::{Router, http::StatusCode, routing::get};
    use tokio::net::TcpListener;

    use super::*;

    async fn answering(status: StatusCode, text: &'static str) -> Healthcheck {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().route("/readyz", get(async move || (status, text)));
        tokio::spawn(axum::serve(listener, router).into_future());
        Healthcheck { listen: ([0, 0, 0, 0], port).into(), management_listen: None }
    }

    #[tokio::test]
    async fn a_ready_gateway_is_healthy() {
        let settings = answering(StatusCode::OK, "ok").await;
        assert_eq!(healthcheck(&settings).await.unwrap(), "ok");
    }

    #[tokio::test]
    async fn a_gateway_that_is_not_ready_gives_its_reason() {
        let settings = answering(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer").await;
        let error = healthcheck(&settings).await.unwrap_err().to_string();
        assert!(error.contains("503") && error.contains("the database does not answer"), "{error}");
    }

    #[tokio::test]
    async fn a_gateway_that_does_not_run_is_an_error() {
        let port = {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            free.local_addr().unwrap().port()
        };
        let settings = Healthcheck { listen: ([127, 0, 0, 1], port).into(), management_listen: None };
        let error = format!("{:#}", healthcheck(&settings).await.unwrap_err());
        assert!(error.contains(&format!("asking http://127.0.0.1:{port}/readyz")), "{error}");
    }

    #[test]
    fn the_management_port_is_asked_if_there_is_one() {
        let listen = ([0, 0, 0, 0], 6066).into();
        let settings = Healthcheck { listen, management_listen: Some("[::]:6067".parse().unwrap()) };
        assert_eq!(reachable(settings.address()).to_string(), "[::1]:6067");
        let settings = Healthcheck { listen, management_listen: None };
        assert_eq!(reachable(settings.address()).to_string(), "127.0.0.1:6066");
    }
}
