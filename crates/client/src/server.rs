//! The URL of a gateway.

use std::{fmt, net::IpAddr, str::FromStr};

use http::Uri;
use serde::{Deserialize, Serialize};

/// The gateway's base URL, to which `/v1` is appended: `http` or `https`, an authority, and optionally a path of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Server(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected http://host:port or https://host, with a path if a proxy serves the gateway below one")]
pub(super) struct NoServer;

impl Server {
    pub(super) fn is_https(&self) -> bool {
        self.0.starts_with("https:")
    }

    /// Returns whether the gateway runs on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let uri: Option<Uri> = self.0.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        host == "localhost" || address.is_some_and(|address| address.is_loopback())
    }

    /// Returns whether only the server can read what is sent to it.
    pub(super) fn is_private(&self) -> bool {
        self.is_https() || self.is_loopback()
    }

    /// Returns the port.
    pub(super) fn port(&self) -> u16 {
        let uri: Option<Uri> = self.0.parse().ok();
        let default = if self.is_https() { 443 } else { 80 };
        uri.as_ref().and_then(Uri::port_u16).unwrap_or(default)
    }

    /// Returns the address of a page of the console.
    pub(super) fn console(&self, page: &str) -> String {
        format!("{}/console/{page}", self.above_v1().unwrap_or(&self.0))
    }

    /// Returns the URL without a `/v1` at its end. `None` if it has none.
    pub(super) fn above_v1(&self) -> Option<&str> {
        self.0.strip_suffix("/v1")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Server {
    type Error = NoServer;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Server> for String {
    fn from(server: Server) -> Self {
        server.0
    }
}

impl FromStr for Server {
    type Err = NoServer;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        // The scheme is optional, as in curl: `gateway:6066`.
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = text.parse().map_err(|_| NoServer)?;
        let fine = matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
            && uri.query().is_none();
        if !fine {
            return Err(NoServer);
        }
        // The parser has normalized the case of the scheme. A lone `/` is not a path.
        let path = uri.path().trim_end_matches('/');
        Ok(Self(format!(
            "{}://{}{path}",
            uri.scheme_str().unwrap_or_default(),
            uri.authority().map_or("", http::uri::Authority::as_str)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_a_url_whose_scheme_is_optional() {
        for (text, url) in [
            ("http://127.0.0.1:6066/", "http://127.0.0.1:6066"),
            ("gateway:6066", "http://gateway:6066"),
            ("HTTPS://spark.example.org/gate/", "https://spark.example.org/gate"),
            ("[::1]:6066", "http://[::1]:6066"),
        ] {
            assert_eq!(text.parse::<Server>().map(|server| server.to_string()), Ok(url.to_owned()), "{text}");
        }
        for nonsense in ["", "http://", "spark://gateway:6066", "http://me:word@gateway", "gateway?x=1", "a b", "/v1"] {
            assert_eq!(nonsense.parse::<Server>(), Err(NoServer), "{nonsense}");
        }
    }
}
