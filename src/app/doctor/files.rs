//! Checks the settings and the files that they name, without the database and the cluster.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::{DateTime, TimeDelta, Utc};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use x509_parser::parse_x509_certificate;

use crate::app::{
    settings::{Logs, Serve},
    telemetry::log_filter,
    traces::Traces,
};
use sparkgate_access::Access;
use sparkgate_cluster::Cluster;
use sparkgate_service::{
    AccessFile, EncryptionKeys, Settings, SparkSettings,
    doctor::{Finding, check_logs},
    error_chain,
};

/// A certificate that expires sooner is reported. Those of cert-manager are renewed a month before.
const SOON: TimeDelta = TimeDelta::days(14);
const REPAIR: &str = "correct the setting";
const ACCESS: &str = "files.access";

/// The findings, and what could be read.
pub(in crate::app) struct Checked {
    pub(in crate::app) findings: Vec<Finding>,
    /// The access file with the gateway's settings; `None` if one of them can't be used.
    pub(in crate::app) access: Option<Arc<AccessFile>>,
    /// `None` if the file can't be used.
    pub(in crate::app) keys: Option<EncryptionKeys>,
}

/// Checks the settings and the files.
pub(in crate::app) async fn check(settings: &Serve, logs: &Logs) -> Checked {
    let mut findings = Vec::new();
    findings.push(judged("settings.log", "the filter of the log can be used", log_filter(&logs.filter).map(drop)));
    findings.push(judged("settings.http", "the listening addresses can be used", addresses(settings)));
    if settings.database.is_set() {
        findings.push(judged("settings.database", "the database has a URL", settings.database.settings().map(drop)));
    }
    let traces = Traces::check(settings.traces.otlp_endpoint.as_deref());
    findings.push(judged("settings.traces", "the export of traces can be used, or is off", traces));
    let cluster = &settings.kubernetes.place;
    if cluster.kubeconfig.is_some() || cluster.context.is_some() {
        let checked = Cluster::open(&cluster.settings()).await.map(drop).map_err(anyhow::Error::from);
        findings.push(judged("files.kubeconfig", "the kubeconfig can be used", checked));
    }
    if let Some(certificate) = &settings.http.tls_certificate {
        findings.push(tls(settings, certificate).await);
    }
    if let Some(key) = &settings.http.tls_key {
        findings.extend(mode("files.tls-key", key, "--tls-key"));
    }
    let spark = settings.spark.settings(&cluster.namespaces());
    let text = "the Spark defaults, the submitter directory and the Spark lines can be used";
    findings.push(match &spark {
        Ok(_) => Finding::ok("files.spark", text),
        Err(error) => {
            Finding::failure("files.spark", format!("{error:#}"), "correct the file, or the setting that names it")
        }
    });
    let access = match spark {
        Ok(spark) => access(settings, spark, &mut findings),
        Err(_) => {
            findings.push(access_alone(settings));
            None
        }
    };
    let keys = keys(settings, &mut findings);
    if let Some(token) = &settings.webhooks.openlineage_token_file {
        findings.extend(mode("files.openlineage-token", token, "--openlineage-token-file"));
    }
    if let Some(log) = &settings.access.audit_log {
        findings.push(audit_log(log));
    }
    findings.extend(logs_store(settings).await);
    Checked { findings, access, keys }
}

fn judged(check: &'static str, text: &str, result: anyhow::Result<()>) -> Finding {
    match result {
        Ok(()) => Finding::ok(check, text),
        Err(error) => Finding::failure(check, format!("{error:#}"), REPAIR),
    }
}

/// Checks the settings of stored logs, and their store.
async fn logs_store(settings: &Serve) -> Option<Finding> {
    let opened = settings.log_store.open_collected().and_then(|_| settings.log_store.open());
    match opened {
        Ok(store) => Some(check_logs(&store?.0).await),
        Err(error) => Some(Finding::failure("files.logs", format!("{error:#}"), REPAIR)),
    }
}

fn addresses(settings: &Serve) -> anyhow::Result<()> {
    let http = &settings.http;
    http.check()?;
    match http.management_listen {
        Some(address) if address == http.listen && address.port() != 0 => {
            anyhow::bail!("--management-listen is {address}, as --listen: give it another port")
        }
        _ => Ok(()),
    }
}

async fn tls(settings: &Serve, certificate: &Path) -> Finding {
    const CHECK: &str = "files.tls";
    if let Err(error) = settings.http.server().await {
        return Finding::failure(CHECK, format!("{error:#}"), "correct the file, or the setting that names it");
    }
    let name = certificate.display();
    let renew = "renew the certificate: the gateway reads its files again by itself";
    match expiry(certificate) {
        Some(end) if end <= Utc::now() => {
            Finding::failure(CHECK, format!("the certificate {name} (--tls-certificate) expired on {end}"), renew)
        }
        Some(end) if end - Utc::now() < SOON => {
            Finding::warning(CHECK, format!("the certificate {name} (--tls-certificate) expires on {end}"), renew)
        }
        Some(end) => Finding::ok(CHECK, format!("the certificate is valid until {end}")),
        None => Finding::warning(CHECK, format!("the end of the certificate {name} can't be read"), renew),
    }
}

/// Returns when the first certificate of a file that ends earliest expires.
fn expiry(path: &Path) -> Option<DateTime<Utc>> {
    let chain = CertificateDer::pem_file_iter(path).ok()?;
    let end = |certificate: CertificateDer<'_>| {
        let (_, certificate) = parse_x509_certificate(&certificate).ok()?;
        DateTime::from_timestamp(certificate.validity().not_after.timestamp(), 0)
    };
    chain.filter_map(Result::ok).filter_map(end).min()
}

/// Checks the access file by itself: the settings that its tenants refer to can't be used.
fn access_alone(settings: &Serve) -> Finding {
    let Some(path) = &settings.access.access_file else { return no_access_file(settings) };
    let parsed = fs::read_to_string(path).map_err(anyhow::Error::from);
    match parsed.and_then(|text| Ok(Access::parse(&text)?)) {
        Ok(_) => Finding::ok(ACCESS, "the access file can be read"),
        Err(error) => {
            let message = format!("--access-file: {}: {error:#}", path.display());
            Finding::failure(ACCESS, message, "correct the file (docs/operate/access.md)")
        }
    }
}

fn no_access_file(settings: &Serve) -> Finding {
    let text = "there is no access file: every caller that reaches the gateway may submit, read and kill everything";
    if settings.http.listen.ip().is_loopback() {
        Finding::ok(ACCESS, text)
    } else {
        Finding::warning(ACCESS, text, "write an access file (docs/operate/access.md) and give --access-file")
    }
}

fn access(settings: &Serve, spark: SparkSettings, findings: &mut Vec<Finding>) -> Option<Arc<AccessFile>> {
    let combined = Settings {
        spark,
        outcome_finalizer: settings.kubernetes.outcome_finalizer,
        caps: settings.limits.settings(),
        kept_log: settings.log_store.kept_bytes(),
    };
    let Some(path) = &settings.access.access_file else {
        findings.push(no_access_file(settings));
        return Some(Arc::new(AccessFile::none(combined)));
    };
    match AccessFile::open(path.clone(), combined) {
        Ok(file) => {
            let tenants = file.current().access().tenants().count();
            findings.push(Finding::ok(ACCESS, format!("the access file can be used: it has {tenants} tenants")));
            Some(Arc::new(file))
        }
        Err(error) => {
            let message = format!("--access-file: {}", error_chain(&error));
            findings.push(Finding::failure(ACCESS, message, "correct the file (docs/operate/access.md)"));
            None
        }
    }
}

fn keys(settings: &Serve, findings: &mut Vec<Finding>) -> Option<EncryptionKeys> {
    const CHECK: &str = "files.encryption-keys";
    let Some(path) = &settings.access.encryption_key_file else {
        let text = "secrets in properties and variables of submissions are stored in plain text, and a copy of the database is enough \
                    to sign URLs of files and tickets of Spark UIs";
        let remedy = "give --encryption-key-file (docs/operate/security.md)";
        findings.push(Finding::warning(CHECK, text, remedy));
        return Some(EncryptionKeys::none());
    };
    findings.extend(mode(CHECK, path, "--encryption-key-file"));
    match EncryptionKeys::open(path.clone()) {
        Ok(keys) => {
            let ids = keys.ids().join(", ");
            findings.push(Finding::ok(CHECK, format!("secrets are encrypted with the first of the keys {ids}")));
            Some(keys)
        }
        Err(error) => {
            let message = format!("--encryption-key-file: {}", error_chain(&error));
            findings.push(Finding::failure(CHECK, message, "correct the file (docs/operate/security.md)"));
            None
        }
    }
}

/// Reports a file with a secret that other accounts of the machine may read. The files of a mounted Secret are the container's
/// alone.
fn mode(check: &'static str, path: &Path, option: &str) -> Option<Finding> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let is_mounted = path.parent().is_some_and(|dir| dir.join("..data").exists());
    (mode & 0o007 != 0 && !is_mounted).then(|| {
        let file = path.display();
        let message =
            format!("{file} ({option}) is a secret, and its mode {mode:04o} lets every account of this machine use it");
        Finding::warning(check, message, format!("chmod o= {file}"))
    })
}

fn audit_log(path: &PathBuf) -> Finding {
    const CHECK: &str = "files.audit-log";
    let name = path.display();
    if path == Path::new("-") {
        return Finding::ok(CHECK, "the audit log goes to standard output");
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let checked = match fs::metadata(path) {
        Ok(_) => OpenOptions::new().append(true).open(path).map(drop),
        Err(_) => fs::metadata(folder).map(drop),
    };
    match checked {
        Ok(()) => Finding::ok(CHECK, format!("the audit log is {name}")),
        Err(error) => {
            let message = format!("the audit log {name} (--audit-log) can't be written: {error}");
            Finding::failure(CHECK, message, "create its folder, and let the gateway's account write there")
        }
    }
}
