//! Reloads while the gateway runs what can change without a restart: the file of settings, the Spark defaults, the submitter
//! directory and the Spark lines. The access file, the encryption keys and the files of TLS are reloaded by the parts that use them.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context, anyhow};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::spawn_blocking,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::app::{
    arguments::{Arguments, LoadError, ResolvedSettings},
    settings::{Limits, Serve, Spark, SparkFiles, is_reloaded},
    telemetry::{LogFilter, log_filter},
};
use sparkgate_metrics::file_read;
use sparkgate_service::{Service, WATCH_PERIOD};

/// The name of these files in metrics.
const METRIC: &str = "settings";

/// The file of settings, and what it is combined with.
pub(in crate::app) struct ReloadSource {
    pub(in crate::app) arguments: Arguments,
    pub(in crate::app) path: PathBuf,
    /// The settings with which the process started.
    pub(in crate::app) started: ResolvedSettings,
    pub(in crate::app) log: LogFilter,
}

/// Reloads the settings of a process.
pub(in crate::app) struct Reload {
    files: Files,
    hangup: Option<Signal>,
}

/// The settings that are reloaded, and where they come from.
struct Files {
    source: Option<ReloadSource>,
    /// The Spark settings with which the process started: only the files change.
    started: Spark,
    /// The namespaces that drivers may use, which don't change either.
    served: Vec<String>,
    /// The content of the file of settings that was read last. At first none: it may have changed since the start read it.
    content: Option<Vec<u8>>,
    /// What it says, or why it can't be used.
    next: Result<Reloaded, String>,
    /// The filter of the log in use.
    filter: Option<String>,
    /// The settings about which the log says that they need a restart.
    waiting: BTreeSet<String>,
}

/// The settings that change without a restart.
#[derive(Clone)]
struct Reloaded {
    files: SparkFiles,
    limits: Limits,
    /// `None` if it can't change.
    filter: Option<String>,
    /// Where they come from.
    resolved: ResolvedSettings,
}

impl Reload {
    /// Prepares the reload of a process with these settings. Without a file of settings, only files that they name are reloaded.
    pub(in crate::app) fn new(settings: &Serve, source: Option<ReloadSource>) -> Self {
        let (started, served) = (settings.spark.clone(), settings.kubernetes.place.namespaces());
        file_read(METRIC, true);
        let resolved = source.as_ref().map(|source| source.started.clone()).unwrap_or_default();
        let (files, limits) = (started.files.clone(), settings.limits.clone());
        let next = Ok(Reloaded { files, limits, filter: None, resolved });
        let filter = source.as_ref().and_then(|source| source.started.value("log").map(str::to_owned));
        Self {
            files: Files { source, started, served, content: None, next, filter, waiting: BTreeSet::new() },
            hangup: None,
        }
    }

    /// Reloads on SIGHUP, too.
    ///
    /// # Errors
    /// The signal can't be listened for.
    pub(in crate::app) fn on_signal(self) -> anyhow::Result<Self> {
        let hangup = signal(SignalKind::hangup()).context("listening for SIGHUP")?;
        Ok(Self { hangup: Some(hangup), ..self })
    }

    /// Reloads whenever a file has changed, and on SIGHUP, until `stop`.
    pub(super) async fn run(self, service: Service, stop: CancellationToken) {
        let Self { mut files, mut hangup } = self;
        loop {
            let signalled = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            let is_signalled = tokio::select! {
                () = stop.cancelled() => return,
                _ = signalled => true,
                () = sleep(WATCH_PERIOD) => false,
            };
            let service = service.clone();
            let looked = spawn_blocking(move || {
                if is_signalled {
                    tracing::info!("SIGHUP received: reading the files again");
                    service.access.reload_if_changed();
                    service.encryption.reload_if_changed();
                }
                files.look(&service, is_signalled);
                files
            });
            match looked.await {
                Ok(back) => files = back,
                // It panicked, which the log says.
                Err(_) => return,
            }
        }
    }
}

impl Files {
    /// Compares the files with what was read last. Files that can't be used change nothing but the log and the readiness text.
    fn look(&mut self, service: &Service, is_signalled: bool) {
        let trouble = self.reload(service, is_signalled).err().map(|error| format!("{error:#}"));
        let before = service.health.settings_trouble();
        if trouble.is_some() || before.is_some() {
            file_read(METRIC, trouble.is_none());
        }
        match &trouble {
            Some(trouble) if is_signalled || before.as_ref() != Some(trouble) => {
                tracing::error!("the settings are not reloaded, the previous ones stay valid: {trouble}");
            }
            None if before.is_some() => tracing::info!("the settings can be used again"),
            _ => {}
        }
        service.health.set_settings_trouble(trouble);
    }

    fn reload(&mut self, service: &Service, is_signalled: bool) -> anyhow::Result<()> {
        self.read(is_signalled);
        let next = self.next.clone().map_err(|reason| anyhow!(reason))?;
        let spark = Spark { files: next.files, ..self.started.clone() };
        let spark = spark.settings(&self.served).map_err(|error| {
            let text = format!("{error:#}");
            anyhow!("{text}{}", next.resolved.notes(&text))
        })?;
        let filter = next.filter.filter(|filter| self.filter.as_ref() != Some(filter));
        let parsed = filter.as_deref().map(log_filter).transpose()?;
        // From here on, nothing fails.
        let mut settings = service.access.settings();
        let caps = next.limits.settings();
        let changes = [
            (settings.spark.defaults != spark.defaults, "Spark defaults"),
            (settings.spark.submitter != spark.submitter, "submitter directory"),
            (settings.spark.lines != spark.lines, "Spark lines"),
            (settings.caps != caps, "limits"),
        ];
        let changed: Vec<_> = changes.into_iter().filter(|(is_changed, _)| *is_changed).map(|(_, what)| what).collect();
        if !changed.is_empty() {
            (settings.spark, settings.caps) = (spark, caps);
            service.access.replace_settings(settings);
            file_read(METRIC, true);
            tracing::info!(changed = changed.join(", "), "settings reloaded");
        }
        if let (Some(source), Some(parsed), Some(filter)) = (&self.source, parsed, filter) {
            source.log.replace(parsed)?;
            tracing::info!(filter, "the filter of the log is replaced");
            self.filter = Some(filter);
        }
        Ok(())
    }

    /// Reads the file of settings if it has changed.
    fn read(&mut self, is_signalled: bool) {
        let Some(source) = &self.source else { return };
        let content = fs::read(&source.path).ok();
        if content == self.content && !is_signalled {
            return;
        }
        self.content = content;
        match load(source) {
            Ok(next) => {
                let changed = source.started.changes(&next.resolved).filter(|name| !is_reloaded(name));
                let waiting: BTreeSet<_> = changed.map(str::to_owned).collect();
                if !waiting.is_empty() && (is_signalled || waiting != self.waiting) {
                    let names = waiting.iter().cloned().collect::<Vec<_>>().join(", ");
                    tracing::warn!(settings = names, "settings have changed that need a restart");
                }
                self.waiting = waiting;
                self.next = Ok(next);
            }
            Err(error) => self.next = Err(format!("{error:#}")),
        }
    }
}

/// Combines the file with the arguments again, and checks the result as a start does.
fn load(source: &ReloadSource) -> anyhow::Result<Reloaded> {
    let loaded = source.arguments.clone().load().map_err(|error| match error {
        LoadError::File(faults) => anyhow!("{faults}"),
        LoadError::CommandLine { error, notes } => anyhow!("{}{notes}", error.to_string().trim_end()),
    })?;
    let resolved = loaded.settings;
    let (serve, logs) = loaded.cli.into_serve().context("the arguments are not those of `serve`")?;
    let checked = serve.http.check().and_then(|()| serve.database.settings());
    checked.map_err(|error| {
        let text = format!("{error:#}");
        anyhow!("{text}{}", resolved.notes(&text))
    })?;
    Ok(Reloaded { files: serve.spark.files, limits: serve.limits, filter: Some(logs.filter), resolved })
}
