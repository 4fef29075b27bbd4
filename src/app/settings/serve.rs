//! Settings of `sparkgate serve`.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::PathBuf,
};

use anyhow::{Context, bail};
use clap::{ArgAction, Args};

use super::{CleanUp, Database, Files, KeptLog, Limits, LogStore, Prices, SparkUi, Webhooks};
use crate::{
    api::{BrowserSettings, HttpSettings, ServerSettings, Tls, TlsFiles, TrustedProxies},
    cluster::ClusterSettings,
    service::{SparkSettings, Submitter},
    spark::{SecretPattern, SparkVersion, parse_properties},
};

#[derive(Debug, Args)]
pub(in crate::app) struct Serve {
    #[command(flatten)]
    pub(in crate::app) http: Http,
    #[command(flatten)]
    pub(in crate::app) database: Database,
    #[command(flatten)]
    pub(in crate::app) kubernetes: Kubernetes,
    #[command(flatten)]
    pub(in crate::app) spark: Spark,
    #[command(flatten)]
    pub(in crate::app) clean_up: CleanUp,
    /// How much of the end of a driver's log is kept, compressed in the database, after its pod is gone: a size such as
    /// 256KiB or 1MiB of text, at most 4MiB, or `off`.
    #[arg(long, env = "SPARKGATE_KEPT_LOG", default_value_t = KeptLog::default(), value_name = "SIZE")]
    pub(in crate::app) kept_log: KeptLog,
    #[command(flatten)]
    pub(in crate::app) log_store: LogStore,
    #[command(flatten)]
    pub(in crate::app) files: Files,
    #[command(flatten)]
    pub(in crate::app) webhooks: Webhooks,
    #[command(flatten)]
    pub(in crate::app) spark_ui: SparkUi,
    #[command(flatten)]
    pub(in crate::app) limits: Limits,
    #[command(flatten)]
    pub(in crate::app) prices: Prices,
    /// The access file: how callers are authenticated, tenants and roles (docs/operate/access.md). It is read again when it changes.
    /// Without it, every caller may do everything.
    #[arg(long, env = "SPARKGATE_ACCESS_FILE", value_name = "FILE")]
    pub(in crate::app) access_file: Option<PathBuf>,
    /// Write each entry of the audit as a line of JSON as well: to a file, or with `-` to standard output.
    #[arg(long, env = "SPARKGATE_AUDIT_LOG", value_name = "FILE|-", requires = "access_file")]
    pub(in crate::app) audit_log: Option<PathBuf>,
    /// File with keys that encrypt secrets of submissions in the database: ID:KEY on each line, the key as base64 of 32 bytes. The
    /// first key encrypts, all decrypt. The file is read again when it changes (docs/operate/security.md).
    #[arg(long, env = "SPARKGATE_ENCRYPTION_KEY_FILE", value_name = "FILE")]
    pub(in crate::app) encryption_key_file: Option<PathBuf>,
    /// Export traces over OTLP (http/protobuf) to the collector at this URL, such as <http://collector:4318>. The variables of
    /// OpenTelemetry, such as `OTEL_EXPORTER_OTLP_ENDPOINT`, work as well (docs/operate/traces.md) [default: no traces].
    #[arg(long, env = "SPARKGATE_OTLP_ENDPOINT", value_name = "URL")]
    pub(in crate::app) otlp_endpoint: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::app) struct Http {
    /// Listening address.
    #[arg(long, env = "SPARKGATE_LISTEN", default_value = "127.0.0.1:6066")]
    pub(in crate::app) listen: SocketAddr,
    /// Allow a listening address other than loopback without TLS. Without an access file, every client that can reach
    /// the address can submit and kill.
    #[arg(long, env = "SPARKGATE_TRUSTED_NETWORK")]
    pub(in crate::app) trusted_network: bool,
    /// Maximum size of a request body, in bytes.
    #[arg(long, env = "SPARKGATE_MAX_REQUEST_BODY", default_value_t = HttpSettings::default().max_request_body_bytes)]
    pub(in crate::app) max_request_body: usize,
    /// Maximum size of all request bodies that are read or held at the same time, in bytes. More wait.
    #[arg(long, env = "SPARKGATE_MAX_REQUEST_BODIES", default_value_t = HttpSettings::default().max_body_bytes_in_flight)]
    pub(in crate::app) max_request_bodies: usize,
    /// Maximum number of clients that follow events or wait for a submission at the same time.
    #[arg(long, env = "SPARKGATE_MAX_SUBSCRIBERS", default_value_t = HttpSettings::default().max_subscribers)]
    pub(in crate::app) max_subscribers: usize,
    /// Connections at the same time. More wait until one ends.
    #[arg(long, env = "SPARKGATE_MAX_CONNECTIONS", default_value_t = ServerSettings::default().max_connections)]
    pub(in crate::app) max_connections: usize,
    /// File with the listener's certificate in PEM format, followed by those of the authorities between it and the root. Serves
    /// https, with HTTP/2 and HTTP/1.1. The files of TLS are read again when they change.
    #[arg(long, env = "SPARKGATE_TLS_CERTIFICATE", value_name = "FILE", requires = "tls_key")]
    pub(in crate::app) tls_certificate: Option<PathBuf>,
    /// File with the private key of the listener's certificate in PEM format, without a password.
    #[arg(long, env = "SPARKGATE_TLS_KEY", value_name = "FILE", requires = "tls_certificate")]
    pub(in crate::app) tls_key: Option<PathBuf>,
    /// File with the certificates (PEM) of the authorities that issue client certificates. A client may present one, and need
    /// not.
    #[arg(long, env = "SPARKGATE_TLS_CLIENT_CA", value_name = "FILE", requires = "tls_certificate")]
    pub(in crate::app) tls_client_ca: Option<PathBuf>,
    /// Second listening address, always without TLS and authentication, with nothing but /livez, /readyz and /metrics: for probes
    /// and Prometheus. Its /readyz gives details that clients needn't see.
    #[arg(long, env = "SPARKGATE_MANAGEMENT_LISTEN", value_name = "ADDR")]
    pub(in crate::app) management_listen: Option<SocketAddr>,
    /// Third listening address, for clients of Livy such as Airflow's `LivyOperator`: Livy's batches at its root, with the same TLS and
    /// authentication (docs/integrate/livy.md).
    #[arg(long, env = "SPARKGATE_LIVY_LISTEN", value_name = "ADDR")]
    pub(in crate::app) livy_listen: Option<SocketAddr>,
    /// Listening address for drivers and executors, with nothing but the signed URLs of uploaded files, and with the same TLS: a network
    /// policy can then keep them away from the APIs. `--files-base-url` has to lead there (docs/use/files.md).
    #[arg(long, env = "SPARKGATE_FILES_LISTEN", value_name = "ADDR", requires = "files_url")]
    pub(in crate::app) files_listen: Option<SocketAddr>,
    /// Path of the first listening address below which Livy's batches are served as well, such as `/livy`, or `/` for its root.
    #[arg(long, env = "SPARKGATE_LIVY_PREFIX", value_name = "PATH")]
    pub(in crate::app) livy_prefix: Option<String>,
    /// Networks (CIDR) or addresses of reverse proxies in front of the gateway, separated by commas. The log then shows the client
    /// that they name in `X-Forwarded-For`.
    #[arg(long, env = "SPARKGATE_TRUSTED_PROXIES", value_name = "CIDR", value_delimiter = ',')]
    pub(in crate::app) trusted_proxies: Vec<String>,
    /// Names under which browsers may reach the gateway, separated by commas. IP addresses, localhost, names of Kubernetes Services and
    /// the console's `externalUrl` are always allowed. If it listens on loopback, or if names are given, other clients use no others either.
    #[arg(long, env = "SPARKGATE_ALLOWED_HOSTS", value_delimiter = ',')]
    pub(in crate::app) allowed_hosts: Vec<String>,
    /// Origins whose pages may use the gateway (CORS), separated by commas, such as <https://dashboard.example.org>.
    #[arg(long, env = "SPARKGATE_CORS_ORIGINS", value_delimiter = ',')]
    pub(in crate::app) cors_origins: Vec<String>,
}

impl Http {
    /// Returns the defaults, for a listening address.
    pub(in crate::app) fn listening_on(listen: SocketAddr) -> Self {
        let HttpSettings { max_request_body_bytes, max_body_bytes_in_flight, max_subscribers, .. } =
            HttpSettings::default();
        Self {
            listen,
            trusted_network: false,
            max_request_body: max_request_body_bytes,
            max_request_bodies: max_body_bytes_in_flight,
            max_subscribers,
            max_connections: ServerSettings::default().max_connections,
            tls_certificate: None,
            tls_key: None,
            tls_client_ca: None,
            management_listen: None,
            livy_listen: None,
            files_listen: None,
            livy_prefix: None,
            trusted_proxies: Vec::new(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
        }
    }

    /// Checks the settings, as far as that is possible without reading files. An address other than loopback needs TLS, or has to
    /// be explicitly allowed.
    pub(in crate::app) fn check(&self) -> anyhow::Result<()> {
        self.browser().check().context("--cors-origins")?;
        self.proxies()?;
        if let Some(prefix) = &self.livy_prefix {
            check_prefix(prefix)?;
        }
        let addresses = [Some(self.listen), self.livy_listen, self.files_listen];
        let open = addresses.into_iter().flatten().find(|address| !address.ip().is_loopback());
        let Some(open) = open.filter(|_| !self.trusted_network && self.tls_files().is_none()) else { return Ok(()) };
        bail!(
            "refusing to listen on {} without TLS: requests could be read and changed on their way. Give --tls-certificate and \
             --tls-key, or --trusted-network if the network itself restricts access. Without an access file, every \
             client that can reach the address can submit and kill",
            open
        )
    }

    pub(in crate::app) fn settings(&self) -> HttpSettings {
        HttpSettings {
            max_request_body_bytes: self.max_request_body,
            max_body_bytes_in_flight: self.max_request_bodies,
            max_subscribers: self.max_subscribers,
            livy_prefix: self.livy_prefix.clone(),
            browser: self.browser(),
            ..HttpSettings::default()
        }
    }

    /// Returns how connections are accepted. Reads the files of TLS.
    ///
    /// # Errors
    /// A file can't be used.
    pub(in crate::app) async fn server(&self) -> anyhow::Result<ServerSettings> {
        let tls = match self.tls_files() {
            Some(files) => Some(Tls::load(files).await?),
            None => None,
        };
        Ok(ServerSettings { max_connections: self.max_connections, tls, trusted_proxies: self.proxies()? })
    }

    fn proxies(&self) -> anyhow::Result<TrustedProxies> {
        TrustedProxies::parse(self.trusted_proxies.iter().map(String::as_str)).context("--trusted-proxies")
    }

    fn tls_files(&self) -> Option<TlsFiles> {
        let (certificate, key) = self.tls_certificate.clone().zip(self.tls_key.clone())?;
        Some(TlsFiles { certificate, key, client_ca: self.tls_client_ca.clone() })
    }

    fn browser(&self) -> BrowserSettings {
        let listed = |values: &[String]| {
            let values = values.iter().map(|value| value.trim().to_owned());
            values.filter(|value| !value.is_empty()).collect::<Vec<_>>()
        };
        let hosts: BTreeSet<_> = listed(&self.allowed_hosts).iter().map(|host| host.to_ascii_lowercase()).collect();
        let for_all_clients = self.listen.ip().is_loopback() || !hosts.is_empty();
        BrowserSettings { hosts, for_all_clients, origins: listed(&self.cors_origins) }
    }
}

/// Checks a path below which an API is served. The gateway's own APIs keep theirs.
fn check_prefix(prefix: &str) -> anyhow::Result<()> {
    let parts = prefix.strip_prefix('/').map(|rest| rest.trim_end_matches('/').split('/'));
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b));
    if prefix == "/"
        || parts.is_some_and(|mut parts| parts.all(is_part)) && !prefix.starts_with("/v1/") && prefix != "/v1"
    {
        return Ok(());
    }
    bail!("--livy-prefix {prefix:?} is not a path for Livy's batches: give one such as /livy, or / for the root")
}

/// The cluster and its namespaces.
#[derive(Debug, Clone, Args)]
pub(in crate::app) struct Place {
    /// The kubeconfig file [default: `KUBECONFIG`, ~/.kube/config, or the service account of this pod].
    #[arg(long, env = "SPARKGATE_KUBECONFIG")]
    pub(in crate::app) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, env = "SPARKGATE_CONTEXT")]
    pub(in crate::app) context: Option<String>,
    /// The namespaces that drivers may use, separated by commas [default: all]. A single one is that of drivers that name none.
    #[arg(long, env = "SPARKGATE_NAMESPACES", value_delimiter = ',')]
    pub(in crate::app) namespaces: Vec<String>,
}

impl Place {
    pub(in crate::app) fn settings(&self) -> ClusterSettings {
        ClusterSettings {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespaces: self.namespaces(),
        }
    }

    /// Returns the namespaces that drivers may use; none for all.
    pub(in crate::app) fn namespaces(&self) -> Vec<String> {
        let names: BTreeSet<_> = self.namespaces.iter().map(|name| name.trim().to_owned()).collect();
        names.into_iter().filter(|name| !name.is_empty()).collect()
    }
}

#[derive(Debug, Args)]
pub(in crate::app) struct Kubernetes {
    #[command(flatten)]
    pub(in crate::app) place: Place,
    /// Keep each driver pod with a finalizer until its outcome is recorded. Without it, a submission whose pod is deleted
    /// while no gateway runs may end as LOST. Before an uninstall, run `sparkgate release-finalizers`.
    #[arg(long, env = "SPARKGATE_OUTCOME_FINALIZER", default_value_t = true, action = ArgAction::Set)]
    pub(in crate::app) outcome_finalizer: bool,
}

#[derive(Debug, Clone, Args)]
pub(in crate::app) struct Spark {
    /// The Spark release that the gateway behaves like: the release of the drivers' images, unless a request selects another one.
    #[arg(long, env = "SPARKGATE_SPARK_VERSION", default_value = "4.3.0")]
    pub(in crate::app) spark_version: SparkVersion,
    /// A spark-defaults.conf with defaults for properties that requests don't set.
    #[arg(long, env = "SPARKGATE_SPARK_DEFAULTS")]
    pub(in crate::app) spark_defaults: Option<PathBuf>,
    /// A directory with named defaults, pod templates and configuration that requests can refer to (docs/use/submitter.md).
    #[arg(long, env = "SPARKGATE_SUBMITTER_DIR")]
    pub(in crate::app) submitter_dir: Option<PathBuf>,
    /// A file with the Spark releases that requests may select besides --spark-version: the image, defaults and templates of each
    /// line (docs/use/spark-versions.md).
    #[arg(long, env = "SPARKGATE_SPARK_LINES_FILE", value_name = "FILE")]
    pub(in crate::app) spark_lines_file: Option<PathBuf>,
    /// `SPARK_USER` of drivers whose submission names no user [default: the account that the gateway runs as].
    #[arg(long, env = "SPARKGATE_SPARK_USER")]
    pub(in crate::app) spark_user: Option<String>,
    /// A regular expression for names and values that are secrets besides those that are known (docs/operate/security.md).
    #[arg(long, env = "SPARKGATE_SECRET_PATTERN", value_name = "REGEX")]
    pub(in crate::app) secret_pattern: Option<SecretPattern>,
}

impl Spark {
    /// Reads the files. If the gateway serves one namespace, that is the default of drivers.
    ///
    /// # Errors
    /// A file that can't be read, or used.
    pub(in crate::app) fn settings(&self, served: &[String]) -> anyhow::Result<SparkSettings> {
        let mut defaults = match &self.spark_defaults {
            None => BTreeMap::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path).with_context(|| {
                    format!("reading the Spark defaults from {} (--spark-defaults)", path.display())
                })?;
                parse_properties(&text)
            }
        };
        if let [only] = served {
            defaults.entry("spark.kubernetes.namespace".to_owned()).or_insert_with(|| only.clone());
        }
        let submitter = self.submitter_dir.as_deref().map(Submitter::read).transpose()?.unwrap_or_default();
        let user = self.spark_user.clone().unwrap_or_else(account);
        let settings = SparkSettings::new(self.spark_version, defaults, submitter, user);
        if let (Err(refusal), Some(path)) = (settings.check_defaults(), &self.spark_defaults) {
            bail!("{} (--spark-defaults) can't be used: {}", path.display(), refusal.reason);
        }
        let Some(path) = &self.spark_lines_file else { return Ok(settings.with_lines(None)?) };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("reading the Spark lines from {} (--spark-lines-file)", path.display()))?;
        settings
            .with_lines(Some(&text))
            .with_context(|| format!("{} (--spark-lines-file) can't be used", path.display()))
    }
}

/// Returns the person who runs `dev`: as [`account`], but by the machine's list of accounts if there was no login, as under cron.
pub(in crate::app) fn person() -> String {
    let accounts = || std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let listed = || listed(&accounts(), rustix::process::getuid().as_raw());
    login().or_else(listed).unwrap_or_else(|| "sparkgate".to_owned())
}

/// Returns the name of an account in a text of passwd(5).
fn listed(accounts: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let of = |line: &str| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id == uid).then(|| name.to_owned())
    };
    accounts.lines().find_map(of)
}

/// Returns the account that this process runs as, from the variables that a login sets.
pub(in crate::app) fn account() -> String {
    login().unwrap_or_else(|| "sparkgate".to_owned())
}

fn login() -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["SPARK_USER", "USER", "LOGNAME"].into_iter().find_map(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_number_and_not_by_its_group() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\n# a line\n\nalice:x:1000:1001::/home/alice:/bin/sh\nbob:x:1001:1000::/:\n";
        for (uid, name) in [(0, Some("root")), (1000, Some("alice")), (1001, Some("bob")), (7, None)] {
            assert_eq!(listed(accounts, uid).as_deref(), name);
        }
    }

    #[test]
    fn an_address_other_than_loopback_needs_tls_or_a_trusted_network() {
        let open = || Http::listening_on("0.0.0.0:6066".parse().unwrap());
        let refusal = open().check().unwrap_err().to_string();
        assert!(refusal.contains("--tls-certificate") && refusal.contains("--trusted-network"), "{refusal}");
        let file = || Some(PathBuf::from("/x.pem"));
        for http in [
            Http::listening_on("[::1]:6066".parse().unwrap()),
            Http { trusted_network: true, ..open() },
            Http { tls_certificate: file(), tls_key: file(), ..open() },
        ] {
            assert!(http.check().is_ok(), "{http:?}");
        }
    }

    #[test]
    fn the_only_namespace_is_the_default() {
        let spark = Spark {
            spark_version: "4.3.0".parse().unwrap(),
            spark_defaults: None,
            submitter_dir: None,
            spark_lines_file: None,
            spark_user: None,
            secret_pattern: None,
        };
        let served = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let default = |spark: &Spark, names: &[&str]| {
            spark.settings(&served(names)).unwrap().defaults.get("spark.kubernetes.namespace").cloned()
        };
        assert_eq!(default(&spark, &["jobs"]).as_deref(), Some("jobs"));
        assert_eq!(default(&spark, &["etl", "jobs"]), None);
        assert_eq!(default(&spark, &[]), None);

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "spark.kubernetes.namespace other").unwrap();
        let spark = Spark { spark_defaults: Some(file.path().to_owned()), ..spark };
        assert_eq!(default(&spark, &["jobs"]).as_deref(), Some("other"));
    }

    #[test]
    fn a_second_address_of_clients_needs_the_same() {
        let http = Http::listening_on("127.0.0.1:6066".parse().unwrap());
        let http = Http { livy_listen: Some("0.0.0.0:8998".parse().unwrap()), ..http };
        assert!(http.check().unwrap_err().to_string().contains("0.0.0.0:8998"));
        let http = Http { livy_listen: None, files_listen: Some("0.0.0.0:6069".parse().unwrap()), ..http };
        assert!(http.check().unwrap_err().to_string().contains("0.0.0.0:6069"));
        assert!(Http { trusted_network: true, ..http }.check().is_ok());
    }

    #[test]
    fn a_prefix_is_a_path_that_is_not_the_gateways() {
        for prefix in ["/", "/livy", "/livy/", "/a/b-c"] {
            assert!(check_prefix(prefix).is_ok(), "{prefix}");
        }
        for prefix in ["", "livy", "/a b", "//", "/v1", "/v1/livy", "/a//b", "/{id}"] {
            assert!(check_prefix(prefix).unwrap_err().to_string().contains("--livy-prefix"), "{prefix}");
        }
    }

    #[test]
    fn proxies_that_are_no_networks_are_refused_with_the_option() {
        let http = Http::listening_on("127.0.0.1:6066".parse().unwrap());
        let error = Http { trusted_proxies: vec!["proxy.example".to_owned()], ..http }.check().unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("--trusted-proxies") && error.contains("proxy.example"), "{error}");
    }
}
