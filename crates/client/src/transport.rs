//! The HTTP client: proxies, certificates and time limits.

use std::{fs, time::Duration};

use reqwest::{Certificate, Client, ClientBuilder, Identity, redirect::Policy};
use rustls::crypto::ring;

use super::{
    connection::Trust,
    error::{Error, root},
    private_file,
    server::Server,
};

const CONNECT: Duration = Duration::from_secs(5);
/// TCP keep-alive. It detects a peer that is gone during a stream that may be silent for hours.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Creates an HTTP client for a server, which is called through the proxy that the environment names (`HTTPS_PROXY`,
/// `HTTP_PROXY`, `NO_PROXY`).
///
/// # Errors
/// The certificates that the settings name, or those of the system, can't be used.
pub(super) fn client(server: &Server, trust: &Trust) -> Result<Client, Error> {
    client_with(server, trust, false)
}

/// Creates a client that speaks HTTP/2 only, with or without TLS, as gRPC requires.
///
/// # Errors
/// As [`client`].
pub(super) fn http2_client(server: &Server, trust: &Trust) -> Result<Client, Error> {
    client_with(server, trust, true)
}

fn client_with(server: &Server, trust: &Trust, is_http2: bool) -> Result<Client, Error> {
    // Fails if the process has one already.
    let _ = ring::default_provider().install_default();
    let own = certificates(trust)?;
    let builder = || {
        let http = Client::builder()
            .user_agent(concat!("sparkgate/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEPALIVE);
        let http = if is_http2 { http.http2_prior_knowledge() } else { http };
        // As in Go's clients: a proxy can't reach this machine's own addresses.
        if server.is_loopback() { http.no_proxy() } else { http }
    };
    let without_tls = || builder().tls_certs_only([]).build();
    let http = match server.is_https() {
        true => identified(builder().tls_certs_merge(own), trust)?.build(),
        false if server.is_loopback() => without_tls(),
        // Only a proxy may need certificates, which a system may lack.
        false => builder().tls_certs_merge(own).build().or_else(|_| without_tls()),
    };
    http.map_err(|error| unusable(trust, &error))
}

/// Adds the certificate of this client.
fn identified(builder: ClientBuilder, trust: &Trust) -> Result<ClientBuilder, Error> {
    let Some(certificate) = &trust.certificate else { return Ok(builder) };
    let key = trust.key.as_ref().unwrap_or(certificate);
    let missing = || Error::Here(format!("{key}: No such file or directory"));
    let mut pem = private_file::read(&key.path)?.ok_or_else(missing)?;
    if trust.key.is_some() {
        let chain = fs::read_to_string(&certificate.path);
        let chain = chain.map_err(|error| Error::Here(format!("{certificate}: {error}")))?;
        pem = format!("{chain}\n{pem}");
    }
    let identity = Identity::from_pem(pem.as_bytes()).map_err(|_| {
        Error::Here(format!(
            "{certificate}: expected a certificate and its private key in PEM format; the key is from {key}"
        ))
    })?;
    Ok(builder.identity(identity))
}

/// Returns the certificates that the settings name.
fn certificates(trust: &Trust) -> Result<Vec<Certificate>, Error> {
    let Some(setting) = &trust.ca_file else { return Ok(Vec::new()) };
    let here = |cause: String| Error::Here(format!("{setting}: {cause}"));
    let text = fs::read(&setting.path).map_err(|error| here(error.to_string()))?;
    let certificates = Certificate::from_pem_bundle(&text).map_err(|error| here(root(&error)))?;
    if certificates.is_empty() {
        return Err(here("it has no certificate in PEM format".to_owned()));
    }
    Ok(certificates)
}

fn unusable(trust: &Trust, error: &reqwest::Error) -> Error {
    let cause = root(error);
    let settings: Vec<String> =
        [&trust.ca_file, &trust.certificate].into_iter().flatten().map(ToString::to_string).collect();
    Error::Here(match settings.is_empty() {
        false => format!("{}: the certificates can't be used: {cause}", settings.join(", ")),
        true => format!(
            "the trusted certificates of this system can't be used: {cause}. Name a file of certificates with --ca-file"
        ),
    })
}
