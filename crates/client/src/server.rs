//! The options that client commands share: the gateway's URL and the output format.

use std::{fmt, net::IpAddr, path::Path, str::FromStr};

use clap::{Args, ValueEnum};
use http::Uri;
use secrecy::{ExposeSecret, SecretString};

#[derive(Debug, Clone, Args)]
pub(super) struct Gateway {
    /// URL of the gateway, without /v1.
    #[arg(
        long,
        env = "SPARKGATE_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:6066",
        help_heading = "Gateway"
    )]
    pub(super) server: Server,
    /// File of certificates (PEM) to trust besides the system's.
    #[arg(long, env = "SPARKGATE_CA_FILE", value_name = "FILE", help_heading = "Gateway")]
    ca_file: Option<String>,
    /// Token that is sent with each request (`Authorization: Bearer`), over https or to this machine only. Other users can read
    /// the command line: prefer the variable.
    #[arg(long, env = "SPARKGATE_TOKEN", hide_env_values = true, value_name = "TOKEN", help_heading = "Gateway")]
    token: Option<SecretString>,
}

impl Gateway {
    /// Returns the token. An empty variable is none.
    pub(super) fn token(&self) -> Option<&SecretString> {
        self.token.as_ref().filter(|token| !token.expose_secret().trim().is_empty())
    }

    pub(super) fn ca_file(&self) -> Option<&Path> {
        self.ca_file.as_deref().filter(|file| !file.is_empty()).map(Path::new)
    }
}

/// The options of commands that print documents.
#[derive(Debug, Clone, Args)]
pub(super) struct Target {
    #[command(flatten)]
    pub(super) gateway: Gateway,
    /// Output format: text tables, or the gateway's JSON unchanged.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", help_heading = "Gateway")]
    pub(super) output: Format,
}

impl Target {
    pub(super) fn json(&self) -> bool {
        self.output == Format::Json
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
}

/// The gateway's base URL, to which `/v1` is appended: `http` or `https`, an authority, and optionally a path of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
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
