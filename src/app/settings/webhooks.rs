//! Where webhooks may lead, and where the installation's own one does.

use std::{fmt, ops::RangeInclusive, path::PathBuf, str::FromStr};

use clap::{ArgAction, Args};
use ipnet::IpNet;

use sparkgate_service::{LineageServer, WebhookSettings};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Webhooks")]
pub(in crate::app) struct Webhooks {
    /// Networks (CIDR) that webhooks may lead to although they aren't the public internet, separated by commas, such as 10.1.2.0/24
    /// (docs/integrate/webhooks.md).
    #[arg(long, env = "SPARKGATE_WEBHOOK_NETWORKS", value_name = "CIDR", value_delimiter = ',')]
    webhook_networks: Vec<IpNet>,
    /// Allow webhooks without TLS. What they send could be read on its way.
    #[arg(long, env = "SPARKGATE_WEBHOOK_HTTP", default_value_t = false, action = ArgAction::Set)]
    webhook_http: bool,
    /// Ports that webhooks may lead to, separated by commas, with ranges such as 8000-8999.
    #[arg(long, env = "SPARKGATE_WEBHOOK_PORTS", value_name = "PORTS", value_delimiter = ',', default_values_t = Ports::defaults())]
    webhook_ports: Vec<Ports>,
    /// Send run events of `OpenLineage` about the submissions of all tenants to this URL, such as <http://marquez:5000/api/v1/lineage>. Its
    /// address may be a private one.
    #[arg(long, env = "SPARKGATE_OPENLINEAGE_URL", value_name = "URL", value_parser = lineage_url)]
    openlineage_url: Option<String>,
    /// File of the token that this server gets as `Authorization: Bearer`. It is read again for each message.
    #[arg(long, env = "SPARKGATE_OPENLINEAGE_TOKEN_FILE", value_name = "FILE", requires = "openlineage_url")]
    pub(in crate::app) openlineage_token_file: Option<PathBuf>,
}

impl Webhooks {
    /// Returns the server that gets run events about all submissions, if there is one.
    pub(in crate::app) fn lineage_server(&self) -> Option<LineageServer> {
        let url = self.openlineage_url.clone()?;
        Some(LineageServer { url, token_file: self.openlineage_token_file.clone() })
    }

    pub(in crate::app) fn settings(&self) -> WebhookSettings {
        WebhookSettings {
            networks: self.webhook_networks.clone(),
            http: self.webhook_http,
            ports: self.webhook_ports.iter().map(|ports| ports.0.clone()).collect(),
        }
    }
}

fn lineage_url(text: &str) -> Result<String, String> {
    LineageServer::check(text).map(|()| text.to_owned())
}

/// A port, or a range of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ports(RangeInclusive<u16>);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a port such as 443, or a range such as 8000-8999")]
struct NoPorts;

impl Ports {
    fn defaults() -> Vec<Self> {
        WebhookSettings::default().ports.into_iter().map(Self).collect()
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

impl FromStr for Ports {
    type Err = NoPorts;

    fn from_str(text: &str) -> Result<Self, NoPorts> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0).ok_or(NoPorts);
        let (first, last) = (port(first)?, port(last)?);
        if first <= last { Ok(Self(first..=last)) } else { Err(NoPorts) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lineage_server_may_be_anywhere() {
        for good in
            ["http://marquez:5000/api/v1/lineage", "http://10.0.0.1/", "https://[::1]:22/", "http://169.254.169.254/"]
        {
            assert_eq!(lineage_url(good).as_deref(), Ok(good));
        }
        for bad in ["", "marquez:5000", "ftp://marquez/", "http://user:password@marquez/", "http:///"] {
            assert!(lineage_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ports_are_numbers_and_ranges() {
        for (text, ports) in [("443", 443..=443), ("8000-8999", 8000..=8999), ("1-65535", 1..=65535)] {
            assert_eq!(text.parse(), Ok(Ports(ports.clone())));
            assert_eq!(Ports(ports).to_string(), text);
        }
        for nonsense in ["", "0", "-1", "65536", "9-8", "1-", "a"] {
            assert_eq!(nonsense.parse::<Ports>(), Err(NoPorts), "{nonsense}");
        }
    }
}
