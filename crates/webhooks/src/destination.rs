//! Where webhooks may lead: nowhere that only the gateway can reach.
//!
//! A URL is checked when a webhook is created, and its addresses each time before a connection: a name may lead elsewhere by then. The
//! connection goes to exactly the address that was checked, because the client asks this resolver and no other.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::RangeInclusive,
    sync::Arc,
};

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// The longest URL.
const LONGEST: usize = 2048;

/// Networks of IPv4 that aren't the public internet (IANA's special-purpose registry), and addresses of clouds within it that only
/// their own machines can reach.
const SPECIAL_V4: [&str; 18] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    // Multicast, reserved, and broadcast.
    "224.0.0.0/3",
];
/// The public internet of IPv6.
const GLOBAL_V6: &str = "2000::/3";
/// Networks in it that aren't: protocol assignments with Teredo, documentation, 6to4, documentation.
const SPECIAL_V6: [&str; 4] = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];
/// Addresses of IPv4 behind NAT64: the last 32 bits.
const NAT64: &str = "64:ff9b::/96";

/// Where webhooks may lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Networks that are permitted although they aren't the public internet.
    pub networks: Vec<IpNet>,
    /// Whether `http` is permitted besides `https`.
    pub http: bool,
    pub ports: Vec<RangeInclusive<u16>>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self { networks: Vec::new(), http: false, ports: vec![80..=80, 443..=443, 1024..=u16::MAX] }
    }
}

/// A host has no address that is permitted. The text is the same whether it has others, so that nothing is learnt of names that
/// only the gateway can resolve.
#[derive(Debug, thiserror::Error)]
#[error("its host has no public address")]
pub(super) struct NoAddress;

impl WebhookSettings {
    /// Checks a URL, as far as that is possible without resolving its host.
    ///
    /// # Errors
    /// What is wrong with it, for the caller.
    pub(super) fn check(&self, text: &str) -> Result<Url, String> {
        if text.len() > LONGEST {
            return Err(format!("a URL has at most {LONGEST} bytes"));
        }
        let url = Url::parse(text).map_err(|error| format!("{text:?} is no URL: {error}"))?;
        match url.scheme() {
            "https" => {}
            "http" if self.http => {}
            "http" => return Err("the URL has to be https: http needs the gateway's setting --webhook-http".to_owned()),
            other => return Err(format!("the URL has to be https, not {other}")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "a URL with a user or a password isn't used: give `bearerToken` if the receiver needs one".to_owned()
            );
        }
        let port = url.port_or_known_default().unwrap_or_default();
        if !self.ports.iter().any(|ports| ports.contains(&port)) {
            return Err(format!("port {port} isn't permitted: the gateway's operator can permit it (--webhook-ports)"));
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(name)) if !name.is_empty() => None,
            _ => return Err("the URL has no host".to_owned()),
        };
        match address {
            Some(address) if !self.permits(address) => Err(format!(
                "{address} is not a public address: the gateway's operator can permit its network (--webhook-networks)"
            )),
            _ => Ok(url),
        }
    }

    /// Returns whether a connection to an address is permitted.
    pub(super) fn permits(&self, address: IpAddr) -> bool {
        let address = embedded(address);
        self.networks.iter().any(|network| network.contains(&address)) || is_public(address)
    }
}

/// Returns the address of IPv4 that one of IPv6 leads to, if it is a mapped one or one behind NAT64.
fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    if let Some(mapped) = v6.to_ipv4_mapped() {
        return mapped.into();
    }
    let [.., high, low] = v6.segments();
    match is_in(address, &[NAT64]) {
        true => Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)).into(),
        false => address,
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => !is_in(address, &SPECIAL_V4),
        IpAddr::V6(v6) => is_in(address, &[GLOBAL_V6]) && !is_in(address, &SPECIAL_V6) && !is_isatap(v6),
    }
}

/// Returns whether an address of IPv6 is a tunnel to one of IPv4 (ISATAP).
fn is_isatap(address: Ipv6Addr) -> bool {
    let [.., kind, mark, _, _] = address.segments();
    kind & !0x0200 == 0 && mark == 0x5efe
}

fn is_in(address: IpAddr, networks: &[&str]) -> bool {
    networks.iter().filter_map(|network| network.parse::<IpNet>().ok()).any(|network| network.contains(&address))
}

/// Resolves names to addresses that are permitted.
#[derive(Clone)]
pub(super) struct Resolver(pub(super) Arc<WebhookSettings>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let settings = self.0.clone();
        Box::pin(async move {
            // The client replaces the port.
            let found: io::Result<Vec<SocketAddr>> =
                tokio::net::lookup_host((name.as_str(), 0)).await.map(Iterator::collect);
            let mut permitted = found.unwrap_or_default();
            permitted.retain(|address| settings.permits(address.ip()));
            match permitted.is_empty() {
                true => Err(NoAddress.into()),
                false => Ok(Box::new(permitted.into_iter()) as Addrs),
            }
        })
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_permitted() {
        let settings = WebhookSettings::default();
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "168.63.129.17",
            "223.255.255.254",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
        ] {
            assert!(settings.permits(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.31.0.1",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2606:4700::5efe:a00:1",
            "2606:4700::200:5efe:a00:1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!settings.permits(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_network_is_permitted_in_each_notation() {
        let settings = WebhookSettings { networks: vec!["10.1.0.0/16".parse().unwrap()], ..WebhookSettings::default() };
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"] {
            assert!(settings.permits(address.parse().unwrap()), "{address}");
        }
        assert!(!settings.permits("10.2.0.1".parse().unwrap()));
    }

    #[test]
    fn a_url_is_refused_with_the_reason() {
        let settings = WebhookSettings::default();
        for (url, reason) in [
            ("http://example.org/", "--webhook-http"),
            ("ftp://example.org/", "not ftp"),
            ("file:///etc/passwd", "not file"),
            ("https://u:p@example.org/", "bearerToken"),
            ("https://example.org:22/", "port 22"),
            ("https://127.0.0.1/", "--webhook-networks"),
            ("https://0x7f.1/", "127.0.0.1"),
            ("https://2130706433/", "127.0.0.1"),
            ("https://[::1]/", "::1"),
            ("https://", "no URL"),
            ("example.org", "no URL"),
        ] {
            let said = settings.check(url).unwrap_err();
            assert!(said.contains(reason), "{url}: {said}");
        }
        assert!(settings.check(&format!("https://example.org/{}", "x".repeat(LONGEST))).is_err());
        for url in ["https://example.org/hook?x=1", "https://1.1.1.1:8443/", "https://localhost/"] {
            assert!(settings.check(url).is_ok(), "{url}: its address is checked later");
        }
    }
}
