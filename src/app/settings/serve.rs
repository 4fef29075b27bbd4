//! Settings of `sparkgate serve`.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    net::SocketAddr,
    path::PathBuf,
};

use anyhow::{Context, bail};
use clap::{ArgAction, Args, Command, FromArgMatches};

use super::{
    Database, clean_up::CleanUp, connect::Connect, files::Files, kueue::Kueue, limits::Limits, log_store::LogStore,
    prices::Prices, spark_ui::SparkUi, webhooks::Webhooks,
};
use sparkgate_cluster::ClusterSettings;
use sparkgate_http::{BrowserSettings, HttpSettings};
use sparkgate_server::{ServerSettings, Tls, TlsFiles, TrustedProxies};
use sparkgate_service::{SparkSettings, Submitter};
use sparkgate_spark::{SecretPattern, SparkVersion, parse_properties};

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
    #[command(flatten)]
    pub(in crate::app) log_store: LogStore,
    #[command(flatten)]
    pub(in crate::app) files: Files,
    #[command(flatten)]
    pub(in crate::app) webhooks: Webhooks,
    #[command(flatten)]
    pub(in crate::app) spark_ui: SparkUi,
    #[command(flatten)]
    pub(in crate::app) connect: Connect,
    #[command(flatten)]
    pub(in crate::app) limits: Limits,
    #[command(flatten)]
    pub(in crate::app) kueue: Kueue,
    #[command(flatten)]
    pub(in crate::app) prices: Prices,
    #[command(flatten)]
    pub(in crate::app) access: AccessFiles,
    #[command(flatten)]
    pub(in crate::app) traces: TraceExport,
}

impl Serve {
    /// Returns the settings that these flags give. The others have their defaults; variables don't count.
    ///
    /// # Errors
    /// A value can't be used.
    pub(in crate::app) fn from_flags(
        flags: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> Result<Self, clap::Error> {
        let flag = |(name, value): (&str, OsString)| {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(value);
            flag
        };
        let command = Self::augment_args(Command::new("serve").no_binary_name(true));
        let command = command.mut_args(|option| option.env(None::<&str>));
        let mut matches = command.try_get_matches_from(flags.into_iter().map(flag))?;
        Self::from_arg_matches_mut(&mut matches)
    }
}

/// Who may use the gateway, and the secrets of submissions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access and secrets")]
pub(in crate::app) struct AccessFiles {
    /// The access file: how callers are authenticated, tenants, roles, limits and policies (docs/operate/access.md). It is read again when it
    /// changes [default: every caller may do everything].
    #[arg(long, env = "SPARKGATE_ACCESS_FILE", value_name = "FILE")]
    pub(in crate::app) access_file: Option<PathBuf>,
    /// Write each entry of the audit as a line of JSON as well: to a file, or with `-` to standard output (docs/operate/access.md).
    #[arg(long, env = "SPARKGATE_AUDIT_LOG", value_name = "FILE|-", requires = "access_file")]
    pub(in crate::app) audit_log: Option<PathBuf>,
    /// File with keys that encrypt secrets of submissions in the database: ID:KEY on each line, the key as base64 of 32 bytes. The
    /// first key encrypts, all decrypt. The file is read again when it changes (docs/operate/security.md) [default: secrets are stored in plain
    /// text].
    #[arg(long, env = "SPARKGATE_ENCRYPTION_KEY_FILE", value_name = "FILE")]
    pub(in crate::app) encryption_key_file: Option<PathBuf>,
}

/// Where traces are exported.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log and traces")]
pub(in crate::app) struct TraceExport {
    /// Export traces over OTLP (http/protobuf) to the collector at this URL, such as <http://collector:4318>. The variables of
    /// OpenTelemetry, such as `OTEL_EXPORTER_OTLP_ENDPOINT`, work as well (docs/operate/traces.md) [default: no traces].
    #[arg(long, env = "SPARKGATE_OTLP_ENDPOINT", value_name = "URL")]
    pub(in crate::app) otlp_endpoint: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Addresses and connections")]
pub(in crate::app) struct Http {
    /// Listening address.
    #[arg(long, env = "SPARKGATE_LISTEN", default_value = "127.0.0.1:6066", value_name = "ADDR")]
    pub(in crate::app) listen: SocketAddr,
    /// Allow a listening address other than loopback without TLS. Without an access file, every client that can reach
    /// the address can submit and kill.
    #[arg(long, env = "SPARKGATE_TRUSTED_NETWORK")]
    pub(in crate::app) trusted_network: bool,
    /// Maximum size of a request body, in bytes.
    #[arg(long, env = "SPARKGATE_MAX_REQUEST_BODY", value_name = "BYTES", default_value_t = HttpSettings::default().max_request_body_bytes)]
    pub(in crate::app) max_request_body: usize,
    /// Maximum size of all request bodies that are read or held at the same time, in bytes, on each replica: at least one largest body.
    /// More wait.
    #[arg(long, env = "SPARKGATE_MAX_REQUEST_BODIES", value_name = "BYTES", default_value_t = HttpSettings::default().max_body_bytes_in_flight)]
    pub(in crate::app) max_request_bodies: usize,
    /// Maximum number of clients that follow events or wait for a submission at the same time, on each replica.
    #[arg(long, env = "SPARKGATE_MAX_SUBSCRIBERS", value_name = "COUNT", default_value_t = HttpSettings::default().max_subscribers)]
    pub(in crate::app) max_subscribers: usize,
    /// Maximum number of connections at the same time, on each replica. More wait until one ends.
    #[arg(long, env = "SPARKGATE_MAX_CONNECTIONS", value_name = "COUNT", default_value_t = ServerSettings::default().max_connections)]
    pub(in crate::app) max_connections: usize,
    /// File with the listener's certificate in PEM format, followed by those of the authorities between it and the root. Serves
    /// https, with HTTP/2 and HTTP/1.1. The files of TLS are read again when they change.
    #[arg(long, env = "SPARKGATE_TLS_CERTIFICATE", value_name = "FILE", requires = "tls_key")]
    pub(in crate::app) tls_certificate: Option<PathBuf>,
    /// File with the private key of the listener's certificate in PEM format, without a password.
    #[arg(long, env = "SPARKGATE_TLS_KEY", value_name = "FILE", requires = "tls_certificate")]
    pub(in crate::app) tls_key: Option<PathBuf>,
    /// File with the certificates (PEM) of the authorities that issue client certificates. Client certificates are optional.
    #[arg(long, env = "SPARKGATE_TLS_CLIENT_CA", value_name = "FILE", requires = "tls_certificate")]
    pub(in crate::app) tls_client_ca: Option<PathBuf>,
    /// Second listening address, such as 0.0.0.0:6067, always without TLS and authentication, with nothing but /livez, /readyz and
    /// /metrics: for probes and Prometheus (docs/reference/metrics.md). Its /readyz gives details that clients needn't see.
    #[arg(long, env = "SPARKGATE_MANAGEMENT_LISTEN", value_name = "ADDR")]
    pub(in crate::app) management_listen: Option<SocketAddr>,
    /// Third listening address, such as 0.0.0.0:8998, for clients of Livy: Livy's batches at its root, with the same TLS and
    /// authentication (docs/integrate/livy.md).
    #[arg(long, env = "SPARKGATE_LIVY_LISTEN", value_name = "ADDR")]
    pub(in crate::app) livy_listen: Option<SocketAddr>,
    /// Listening address for drivers and executors, such as 0.0.0.0:6069, with nothing but the signed URLs of uploaded files, and with the
    /// same TLS: a network policy can then keep them away from the APIs. `--files-base-url` has to lead there (docs/use/files.md)
    /// [default: the first address].
    #[arg(long, env = "SPARKGATE_FILES_LISTEN", value_name = "ADDR", requires = "files_url")]
    pub(in crate::app) files_listen: Option<SocketAddr>,
    /// Listening address for clients of Spark Connect, such as 0.0.0.0:15002, with the same TLS and authentication: gRPC over HTTP/2, and
    /// nothing else (docs/use/connect.md) [default: no sessions].
    #[arg(long, env = "SPARKGATE_CONNECT_LISTEN", value_name = "ADDR")]
    pub(in crate::app) connect_listen: Option<SocketAddr>,
    /// Networks (CIDR) or addresses of reverse proxies in front of the gateway, such as 10.0.0.0/8, separated by commas. The log then
    /// shows the client that they name in `X-Forwarded-For`.
    #[arg(long, env = "SPARKGATE_TRUSTED_PROXIES", value_name = "CIDR", value_delimiter = ',')]
    pub(in crate::app) trusted_proxies: Vec<String>,
    /// Names under which browsers may reach the gateway, such as spark.example.org, separated by commas (docs/use/api.md). IP addresses,
    /// localhost, names of Kubernetes Services and the console's `externalUrl` are always allowed. If it listens on loopback, or if names are
    /// given, other clients use no others either.
    #[arg(long, env = "SPARKGATE_ALLOWED_HOSTS", value_name = "HOST", value_delimiter = ',')]
    pub(in crate::app) allowed_hosts: Vec<String>,
    /// Origins whose pages may use the gateway (CORS), separated by commas, such as <https://dashboard.example.org>.
    #[arg(long, env = "SPARKGATE_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    pub(in crate::app) cors_origins: Vec<String>,
}

impl Http {
    /// Checks the settings, as far as that is possible without reading files. An address other than loopback needs TLS, or has to
    /// be explicitly allowed.
    pub(in crate::app) fn check(&self) -> anyhow::Result<()> {
        self.browser().check().context("--cors-origins")?;
        self.proxies()?;
        let addresses = [Some(self.listen), self.livy_listen, self.files_listen, self.connect_listen];
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

    /// Returns whether connections use TLS.
    pub(in crate::app) fn is_tls(&self) -> bool {
        self.tls_files().is_some()
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

/// The cluster and its namespaces.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(in crate::app) struct Place {
    /// The kubeconfig file [default: `KUBECONFIG`, ~/.kube/config, or the service account of this pod].
    #[arg(long, env = "SPARKGATE_KUBECONFIG", value_name = "FILE")]
    pub(in crate::app) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, such as production [default: its current one].
    #[arg(long, env = "SPARKGATE_CONTEXT")]
    pub(in crate::app) context: Option<String>,
    /// The namespaces that drivers may use, such as spark, separated by commas. A single one is that of drivers that name none. For all
    /// namespaces, the gateway needs a `ClusterRole` [default: all].
    #[arg(long, env = "SPARKGATE_NAMESPACES", value_name = "NAMESPACE", value_delimiter = ',')]
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
    /// while no gateway runs may end as LOST (docs/operate/reliability.md). Costs one PATCH for each submission. Before an uninstall, run
    /// `sparkgate release-finalizers`.
    #[arg(long, env = "SPARKGATE_OUTCOME_FINALIZER", default_value_t = true, action = ArgAction::Set)]
    pub(in crate::app) outcome_finalizer: bool,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Spark")]
pub(in crate::app) struct Spark {
    /// The Spark release that the gateway behaves like: the release of the drivers' images, unless a request selects another one.
    #[arg(long, env = "SPARKGATE_SPARK_VERSION", default_value = "4.3.0")]
    pub(in crate::app) spark_version: SparkVersion,
    #[command(flatten)]
    pub(in crate::app) files: SparkFiles,
    /// `SPARK_USER` of drivers whose submission names no user, such as spark [default: the account that the gateway runs as].
    #[arg(long, env = "SPARKGATE_SPARK_USER")]
    pub(in crate::app) spark_user: Option<String>,
    /// A regular expression such as `^CORP_` for names and values that are secrets besides those that are known: the gateway hides and
    /// encrypts them, and refuses them where a policy forbids secrets (docs/operate/security.md).
    #[arg(long, env = "SPARKGATE_SECRET_PATTERN", value_name = "REGEX")]
    pub(in crate::app) secret_pattern: Option<SecretPattern>,
}

/// The files and folders of the operator. They change without a restart.
#[derive(Debug, Clone, Args)]
pub(in crate::app) struct SparkFiles {
    /// A spark-defaults.conf with defaults for properties that requests don't set, such as image, namespace and service account.
    #[arg(long, env = "SPARKGATE_SPARK_DEFAULTS", value_name = "FILE")]
    pub(in crate::app) spark_defaults: Option<PathBuf>,
    /// A directory with named defaults, pod templates and configuration that requests can refer to (docs/use/submitter.md).
    #[arg(long, env = "SPARKGATE_SUBMITTER_DIR", value_name = "DIR")]
    pub(in crate::app) submitter_dir: Option<PathBuf>,
    /// A file with the Spark releases that requests may select besides --spark-version: the image, defaults and templates of each
    /// line (docs/use/spark-versions.md).
    #[arg(long, env = "SPARKGATE_SPARK_LINES_FILE", value_name = "FILE")]
    pub(in crate::app) spark_lines_file: Option<PathBuf>,
}

impl Spark {
    /// Reads the files. If the gateway serves one namespace, that is the default of drivers.
    ///
    /// # Errors
    /// A file that can't be read, or used.
    pub(in crate::app) fn settings(&self, served: &[String]) -> anyhow::Result<SparkSettings> {
        let SparkFiles { spark_defaults, submitter_dir, spark_lines_file } = &self.files;
        let mut defaults = match spark_defaults {
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
        let submitter = submitter_dir.as_deref().map(Submitter::read).transpose()?.unwrap_or_default();
        let user = self.spark_user.clone().unwrap_or_else(account);
        let settings = SparkSettings::new(self.spark_version, defaults, submitter, user);
        if let (Err(refusal), Some(path)) = (settings.check_defaults(), spark_defaults) {
            bail!("{} (--spark-defaults) can't be used: {}", path.display(), refusal.reason);
        }
        let Some(path) = spark_lines_file else { return Ok(settings.with_lines(None)?) };
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

    fn serve(listen: &str) -> Serve {
        Serve::from_flags([("database-url", "postgres://u@h/d".into()), ("listen", listen.into())]).unwrap()
    }

    fn listening_on(address: &str) -> Http {
        serve(address).http
    }

    #[test]
    fn an_account_is_found_by_its_number_and_not_by_its_group() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\n# a line\n\nalice:x:1000:1001::/home/alice:/bin/sh\nbob:x:1001:1000::/:\n";
        for (uid, name) in [(0, Some("root")), (1000, Some("alice")), (1001, Some("bob")), (7, None)] {
            assert_eq!(listed(accounts, uid).as_deref(), name);
        }
    }

    #[test]
    fn an_address_other_than_loopback_needs_tls_or_a_trusted_network() {
        let open = || listening_on("0.0.0.0:6066");
        let refusal = open().check().unwrap_err().to_string();
        assert!(refusal.contains("--tls-certificate") && refusal.contains("--trusted-network"), "{refusal}");
        let file = || Some(PathBuf::from("/x.pem"));
        for http in [
            listening_on("[::1]:6066"),
            Http { trusted_network: true, ..open() },
            Http { tls_certificate: file(), tls_key: file(), ..open() },
        ] {
            assert!(http.check().is_ok(), "{http:?}");
        }
    }

    #[test]
    fn the_only_namespace_is_the_default() {
        let spark = serve("127.0.0.1:6066").spark;
        let served = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let default = |spark: &Spark, names: &[&str]| {
            spark.settings(&served(names)).unwrap().defaults.get("spark.kubernetes.namespace").cloned()
        };
        assert_eq!(default(&spark, &["jobs"]).as_deref(), Some("jobs"));
        assert_eq!(default(&spark, &["etl", "jobs"]), None);
        assert_eq!(default(&spark, &[]), None);

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "spark.kubernetes.namespace other").unwrap();
        let files = SparkFiles { spark_defaults: Some(file.path().to_owned()), ..spark.files.clone() };
        let spark = Spark { files, ..spark };
        assert_eq!(default(&spark, &["jobs"]).as_deref(), Some("other"));
    }

    #[test]
    fn a_second_address_of_clients_needs_the_same() {
        let http = listening_on("127.0.0.1:6066");
        let http = Http { livy_listen: Some("0.0.0.0:8998".parse().unwrap()), ..http };
        assert!(http.check().unwrap_err().to_string().contains("0.0.0.0:8998"));
        let http = Http { livy_listen: None, files_listen: Some("0.0.0.0:6069".parse().unwrap()), ..http };
        assert!(http.check().unwrap_err().to_string().contains("0.0.0.0:6069"));
        assert!(Http { trusted_network: true, ..http }.check().is_ok());
    }

    #[test]
    fn proxies_that_are_no_networks_are_refused_with_the_option() {
        let http = listening_on("127.0.0.1:6066");
        let error = Http { trusted_proxies: vec!["proxy.example".to_owned()], ..http }.check().unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("--trusted-proxies") && error.contains("proxy.example"), "{error}");
    }
}
