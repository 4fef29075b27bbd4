//! The other end of a connection, and the proxies that may name the client behind it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// The addresses of the client and of the proxies before the last one, separated by commas.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The scheme of the request that a proxy received.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The other end of a request's connection: an extension of each request that [`serve`](super::serve) received.
#[derive(Debug, Clone)]
pub struct Peer {
    pub address: SocketAddr,
    /// The client's address, if the peer is a trusted proxy that names it.
    pub forwarded: Option<IpAddr>,
    /// The client certificate, checked against the authorities of `--tls-client-ca`.
    pub certificate: Option<Arc<CertificateDer<'static>>>,
    /// Whether the client has checked a server's certificate: this gateway's, or that of a trusted proxy, which says so.
    pub is_secure: bool,
}

impl Peer {
    /// Creates the peer of a connection. An IPv4 address of a socket for both families is an IPv4 address.
    pub(super) fn new(address: SocketAddr, certificate: Option<CertificateDer<'static>>, is_secure: bool) -> Self {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        Self { address, forwarded: None, certificate: certificate.map(Arc::new), is_secure }
    }

    /// Returns the client's address.
    pub fn client(&self) -> IpAddr {
        self.forwarded.unwrap_or_else(|| self.address.ip())
    }

    /// Returns the peer of a request with these headers.
    pub(super) fn behind_proxies(&self, headers: &HeaderMap, proxies: &TrustedProxies) -> Self {
        let address = self.address.ip();
        let is_secure = self.is_secure || proxies.contains(address) && is_forwarded_securely(headers);
        Self { forwarded: proxies.client(address, headers), is_secure, ..self.clone() }
    }
}

/// The networks of the proxies whose `X-Forwarded-For` is believed. None by default.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

/// A text that is no network.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a network: write an address such as 10.1.2.3, or a network such as 10.0.0.0/8")]
pub struct NetworkError(String);

impl TrustedProxies {
    /// Parses networks in CIDR notation (RFC 4632, RFC 4291), and addresses. Empty texts are left out.
    ///
    /// # Errors
    /// [`NetworkError`] names the first text that is neither.
    pub fn parse<'a>(networks: impl IntoIterator<Item = &'a str>) -> Result<Self, NetworkError> {
        let networks = networks.into_iter().map(str::trim).filter(|text| !text.is_empty());
        let parsed = networks.map(|text| {
            let address = || text.parse().map(|address: IpAddr| IpNet::from(address));
            text.parse().or_else(|_| address()).map_err(|_| NetworkError(text.to_owned()))
        });
        Ok(Self(parsed.collect::<Result<_, _>>()?))
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the client's address: the last one in `X-Forwarded-For` that is no trusted proxy, or the first one if all are.
    /// `None` if the peer isn't a trusted proxy, or what it says is no address.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        if !self.contains(peer) {
            return None;
        }
        let mut client = None;
        for value in headers.get_all(FORWARDED_FOR).iter().rev() {
            for text in value.to_str().ok()?.split(',').rev() {
                let address = address(text.trim())?;
                client = Some(address);
                if !self.contains(address) {
                    return client;
                }
            }
        }
        client
    }
}

/// Returns whether every proxy says that it received the request by https.
fn is_forwarded_securely(headers: &HeaderMap) -> bool {
    let values: Option<Vec<&str>> = headers.get_all(FORWARDED_PROTO).iter().map(|value| value.to_str().ok()).collect();
    let mut schemes = values.iter().flatten().flat_map(|value| value.split(',')).map(str::trim).peekable();
    schemes.peek().is_some() && schemes.all(|scheme| scheme.eq_ignore_ascii_case("https"))
}

/// Parses an address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let address = text.parse().or_else(|_| text.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, values: &[&str]) -> Option<String> {
        let proxies = TrustedProxies::parse(["10.0.0.0/8", " 192.0.2.1 ", "", "2001:db8::/32"]).unwrap();
        let headers = values.iter().map(|value| (FORWARDED_FOR, value.parse().unwrap())).collect();
        let peer = Peer::new(SocketAddr::new(peer.parse().unwrap(), 4711), None, false);
        peer.behind_proxies(&headers, &proxies).forwarded.map(|address| address.to_string())
    }

    #[test]
    fn only_a_trusted_proxy_says_that_its_client_came_by_https() {
        let proxies = TrustedProxies::parse(["10.0.0.0/8"]).unwrap();
        for (peer, values, expected) in [
            ("10.1.1.1", &["https"][..], true),
            ("10.1.1.1", &["HTTPS, https"], true),
            ("10.1.1.1", &["https", "http"], false),
            ("10.1.1.1", &["http"], false),
            ("10.1.1.1", &[""], false),
            ("10.1.1.1", &[], false),
            ("192.0.2.1", &["https"], false),
        ] {
            let headers = values.iter().map(|value| (FORWARDED_PROTO, value.parse().unwrap())).collect();
            let peer = Peer::new(SocketAddr::new(peer.parse().unwrap(), 4711), None, false);
            assert_eq!(peer.behind_proxies(&headers, &proxies).is_secure, expected, "{values:?}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_trusted_proxy() {
        for (peer, values, expected) in [
            ("10.1.1.1", &["198.51.100.7"][..], Some("198.51.100.7")),
            ("::ffff:10.1.1.1", &["198.51.100.7:4711"], Some("198.51.100.7")),
            ("2001:db8::1", &["[2001:db9::5]:4711"], Some("2001:db9::5")),
            ("10.1.1.1", &["203.0.113.9, 198.51.100.7, 192.0.2.1,10.2.2.2"], Some("198.51.100.7")),
            ("10.1.1.1", &["203.0.113.9", "198.51.100.7", "192.0.2.1"], Some("198.51.100.7")),
            ("10.1.1.1", &["10.3.3.3, 10.2.2.2"], Some("10.3.3.3")),
            ("10.1.1.1", &["203.0.113.9, unknown, 10.2.2.2"], None),
            ("10.1.1.1", &[], None),
            ("192.0.2.2", &["198.51.100.7"], None),
        ] {
            assert_eq!(client(peer, values).as_deref(), expected, "{peer} {values:?}");
        }
    }

    #[test]
    fn a_text_that_is_no_network_is_named() {
        for text in ["10.0.0.0/33", "proxy.example", "10.0.0"] {
            assert_eq!(TrustedProxies::parse([text]).unwrap_err(), NetworkError(text.to_owned()));
        }
    }
}
