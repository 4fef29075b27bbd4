//! Where webhooks may lead.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use clap::{ArgAction, Args};
use ipnet::IpNet;

use crate::service::WebhookSettings;

#[derive(Debug, Clone, Args)]
pub(in crate::app) struct Webhooks {
    /// Networks (CIDR) that webhooks may lead to although they aren't the public internet, separated by commas, such as 10.1.2.0/24.
    #[arg(long, env = "SPARKGATE_WEBHOOK_NETWORKS", value_name = "CIDR", value_delimiter = ',')]
    webhook_networks: Vec<IpNet>,
    /// Allow webhooks without TLS. What they send could be read on its way.
    #[arg(long, env = "SPARKGATE_WEBHOOK_HTTP", default_value_t = false, action = ArgAction::Set)]
    webhook_http: bool,
    /// Ports that webhooks may lead to, separated by commas, with ranges such as 8000-8999.
    #[arg(long, env = "SPARKGATE_WEBHOOK_PORTS", value_name = "PORTS", value_delimiter = ',', default_values_t = Ports::defaults())]
    webhook_ports: Vec<Ports>,
}

impl Webhooks {
    /// Returns the settings of a gateway on a laptop, whose webhooks may lead to the laptop itself.
    pub(in crate::app) fn of_this_machine() -> Self {
        let networks = ["127.0.0.0/8", "::1/128"].into_iter().filter_map(|network| network.parse().ok());
        Self { webhook_networks: networks.collect(), webhook_http: true, webhook_ports: Ports::defaults() }
    }

    pub(in crate::app) fn settings(&self) -> WebhookSettings {
        WebhookSettings {
            networks: self.webhook_networks.clone(),
            http: self.webhook_http,
            ports: self.webhook_ports.iter().map(|ports| ports.0.clone()).collect(),
        }
    }
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
