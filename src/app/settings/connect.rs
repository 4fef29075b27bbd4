//! Sessions of Spark Connect.

use std::{net::SocketAddr, time::Duration};

use clap::Args;

use sparkgate_service::ConnectSettings;
use sparkgate_submission::parse_duration;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sessions of Spark Connect")]
pub(in crate::app) struct Connect {
    /// URL of `--connect-listen` for clients, such as <sc://connect.example.org:443>, if it isn't the gateway's own name with that port
    /// (docs/use/connect.md).
    #[arg(long, env = "SPARKGATE_CONNECT_URL", value_name = "URL", requires = "connect_listen", value_parser = url)]
    connect_url: Option<String>,
    /// End a session after so long without a request, unless it asks for another time.
    #[arg(long, env = "SPARKGATE_CONNECT_IDLE_TIMEOUT", value_name = "TIME", default_value = "30m", value_parser = time)]
    connect_idle_timeout: Duration,
    /// The longest idle timeout that a session may ask for.
    #[arg(long, env = "SPARKGATE_CONNECT_MAX_IDLE_TIMEOUT", value_name = "TIME", default_value = "24h", value_parser = time)]
    connect_max_idle_timeout: Duration,
    /// Maximum number of live sessions of one principal in a tenant.
    #[arg(long, env = "SPARKGATE_CONNECT_SESSIONS_PER_PRINCIPAL", value_name = "COUNT", default_value_t = ConnectSettings::default().of_principal)]
    connect_sessions_per_principal: u32,
    /// Maximum number of live sessions of a tenant.
    #[arg(long, env = "SPARKGATE_CONNECT_SESSIONS_PER_TENANT", value_name = "COUNT", default_value_t = ConnectSettings::default().of_tenant)]
    connect_sessions_per_tenant: u32,
    /// Jar of Spark Connect for sessions of Spark 3.5, whose images lack it, such as <local:///opt/spark/connect/spark-connect_2.12-3.5.9.jar>.
    /// Spark 3.5 has no authentication: a namespace of such sessions must have the network policy of `sparkgate admission`, and the
    /// cluster's network must enforce it [default: no sessions of Spark 3.5].
    #[arg(long, env = "SPARKGATE_CONNECT_SPARK_3_5_JAR", value_name = "URI", requires = "connect_listen", value_parser = jar)]
    connect_spark_3_5_jar: Option<String>,
}

impl Connect {
    /// Returns the settings of sessions whose clients connect to this address.
    pub(in crate::app) fn settings(&self, listen: Option<SocketAddr>, is_tls: bool) -> ConnectSettings {
        ConnectSettings {
            listen,
            url: self.connect_url.clone(),
            is_tls,
            idle_timeout: self.connect_idle_timeout,
            longest_idle_timeout: self.connect_max_idle_timeout,
            of_principal: self.connect_sessions_per_principal,
            of_tenant: self.connect_sessions_per_tenant,
            jar_of_3_5: self.connect_spark_3_5_jar.clone(),
        }
    }
}

fn url(text: &str) -> Result<String, &'static str> {
    let host = text.strip_prefix("sc://").map(|host| host.trim_end_matches('/'));
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', ';', '?', '#', '@', ' ']);
    host.filter(|host| is_host(host))
        .map(|host| format!("sc://{host}"))
        .ok_or("expected a URL such as sc://connect.example.org:443")
}

fn jar(text: &str) -> Result<String, &'static str> {
    let is_uri = text.contains(":/") && !text.contains([',', ' ']);
    is_uri
        .then(|| text.to_owned())
        .ok_or("expected the URI of a jar, such as local:///opt/spark-connect_2.12-3.5.9.jar")
}

fn time(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).filter(|time| time.as_secs() >= 60).ok_or("expected a time of at least a minute, such as 30m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_host_with_a_port() {
        assert_eq!(url("sc://c.example:443/").as_deref(), Ok("sc://c.example:443"));
        assert_eq!(url("sc://c.example").as_deref(), Ok("sc://c.example"));
        for wrong in
            ["", "sc://", "https://c.example", "sc://c.example/x", "sc://c.example;token=x", "sc://u@c.example"]
        {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
