//! Connects the service to its database and its cluster.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, bail};

use crate::app::{audit_log::AuditLog, settings::Serve};
use sparkgate_cluster::Cluster;
use sparkgate_http::HttpSettings;
use sparkgate_service::{
    self, AccessFile, CleanUpSettings, EncryptionKeys, KeyFileError, Service, Settings, Setup, SparkSettings,
    error_chain,
};
use sparkgate_store::{ConnectError, Store};

const RETRY: Duration = Duration::from_secs(1);

/// The service with its database, before its loops run.
pub(super) struct Parts {
    pub(super) store: Store,
    pub(super) service: Service,
    pub(super) http: HttpSettings,
    pub(super) clean_up: CleanUpSettings,
    pub(super) audit_log: Option<AuditLog>,
}

impl Parts {
    /// Connects to the database and the cluster. Waits for the database without a time limit.
    ///
    /// # Errors
    /// Permanent errors: a setting, the database or the cluster can't be used.
    pub(super) async fn connect(settings: &Serve, spark: SparkSettings) -> anyhow::Result<Self> {
        let database = settings.database.settings()?;
        let keys =
            Arc::new(encryption_keys(settings.access.encryption_key_file.as_deref()).context("--encryption-key-file")?);
        if let Some(host) = database.unverified_host() {
            tracing::warn!(
                "the connection to the database at {host} is not protected against a third party in the network: add \
                 sslmode=verify-full to the URL (SPARKGATE_DATABASE_URL), and sslrootcert=FILE if the certificate is of an \
                 authority of your own"
            );
        }
        let for_all = Settings {
            spark,
            outcome_finalizer: settings.kubernetes.outcome_finalizer,
            caps: settings.limits.settings(),
            kept_log: settings.log_store.kept_bytes(),
        };
        let access = Arc::new(match &settings.access.access_file {
            Some(path) => AccessFile::open(path.clone(), for_all).context("--access-file")?,
            None => AccessFile::none(for_all),
        });
        let audit_log = settings.access.audit_log.as_deref().map(AuditLog::open).transpose().context("--audit-log")?;
        let mut store = patiently(async || Store::connect(&database).await, ConnectError::may_pass).await?;
        if let Some(log) = &audit_log {
            store = store.with_audit_log(Arc::new(log.clone()));
        }
        let setup = Setup {
            files: settings.files.open()?,
            logs: settings.log_store.open()?,
            collected_logs: settings.log_store.open_collected()?,
            webhooks: settings.webhooks.settings(),
            lineage: settings.webhooks.lineage_server(),
            spark_ui: settings.spark_ui.settings(),
            prices: settings.prices.settings(),
            kueue: settings.kueue.settings(),
            connect: settings.connect.settings(settings.http.connect_listen, settings.http.is_tls()),
            ..Setup::new(access, keys)
        };
        let cluster = Cluster::connect(&settings.kubernetes.place.settings()).await?;
        if let Some(namespace) = setup.kueue.keys().find(|namespace| !cluster.watches(namespace)) {
            bail!("--kueue-queues: {namespace} is no namespace of drivers: add it to --namespaces");
        }
        let http = settings.http.settings();
        let clean_up = settings.clean_up.settings();
        let service = async || Service::new(store.clone(), cluster.clone(), setup.clone()).await;
        let service = patiently(service, sparkgate_service::Error::may_pass).await?;
        if let Some((store, _)) = &setup.files {
            tracing::info!(store = store.name(), "uploaded files are kept");
        }
        if let Some((store, _)) = &setup.logs {
            tracing::info!(store = store.name(), "logs are stored");
        }
        if let Some(logs) = &setup.collected_logs {
            tracing::info!(template = logs.name(), "logs of a collector are read");
        }
        match service.health.check_cluster().await {
            Err(error) if error.may_pass() => {
                tracing::warn!("no driver is launched until the API server answers: {}", error_chain(&error));
            }
            checked => checked?,
        }
        Ok(Self { store, service, http, clean_up, audit_log })
    }
}

/// Returns the keys of the file, and logs which key encrypts, if there is one.
fn encryption_keys(file: Option<&Path>) -> Result<EncryptionKeys, KeyFileError> {
    let Some(file) = file else {
        tracing::info!(
            "secrets in properties and variables of submissions are stored in plain text: a file with a key \
             (--encryption-key-file) encrypts them"
        );
        return Ok(EncryptionKeys::none());
    };
    let keys = EncryptionKeys::open(file.to_owned())?;
    tracing::info!(keys = keys.ids().join(", "), "secrets of submissions are encrypted with the first key");
    Ok(keys)
}

/// Retries as long as the only error is that the database doesn't answer, so that the gateway needs no restart after an
/// outage.
async fn patiently<T, E: std::error::Error>(
    attempt: impl AsyncFn() -> Result<T, E>,
    may_pass: impl Fn(&E) -> bool,
) -> Result<T, E> {
    loop {
        match attempt().await {
            Err(error) if may_pass(&error) => {
                tracing::warn!(retry_in = ?RETRY, "waiting for the database: {}", error_chain(&error));
            }
            answer => return answer,
        }
        tokio::time::sleep(RETRY).await;
    }
}
