//! The access file: read at the start, and again when it changes.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    error::error_chain,
    settings::Settings,
    tenancy::{PolicyFaults, Tenancy},
};
use crate::{
    access::{
        Access, AccessFileError,
        jwt::{SharedSecret, SharedSecretError},
    },
    metrics::file_read,
    store::Store,
};

/// How often the file is compared with what was read. Kubernetes updates a mounted `ConfigMap` about once a minute.
const LOOK: Duration = Duration::from_secs(5);

/// The name of the file in metrics.
const METRIC: &str = "access";

/// The access file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("reading the access file {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is no access file", path.display())]
    Invalid { path: PathBuf, source: Box<AccessFileError> },
    #[error("{} is no secret of Spark's JWSFilter", path.display())]
    Secret { path: PathBuf, source: SharedSecretError },
    #[error("{} can't be used", path.display())]
    Policy { path: PathBuf, source: PolicyFaults },
}

/// The current access, and the file that it comes from.
#[derive(Debug)]
pub struct AccessFile {
    path: Option<PathBuf>,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    tenancy: Arc<Tenancy>,
    /// The gateway's settings that the access is combined with.
    settings: Settings,
    /// The content that was read last, whether it could be used or not.
    content: String,
    /// Why the file as it is now can't be used.
    trouble: Option<String>,
}

impl AccessFile {
    /// Returns the access of a gateway without a file: callers aren't authenticated, and there is one tenant.
    pub fn none(settings: Settings) -> Self {
        let tenancy = Tenancy::open(&settings);
        Self::new(None, tenancy, String::new(), settings)
    }

    /// Returns the name of the tenant that a namespace belongs to; empty if it belongs to none.
    pub(super) fn tenant_of(&self, namespace: &str) -> String {
        let current = self.current();
        current.access().tenant_of_namespace(namespace).map(|tenant| tenant.name.clone()).unwrap_or_default()
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn open(path: PathBuf, settings: Settings) -> Result<Self, AccessError> {
        let content = read(&path)?;
        let tenancy = parse(&path, &content, &settings)?;
        file_read(METRIC, true);
        Ok(Self::new(Some(path), tenancy, content, settings))
    }

    fn new(path: Option<PathBuf>, tenancy: Tenancy, content: String, settings: Settings) -> Self {
        let tenancy = Arc::new(tenancy);
        Self { path, state: RwLock::new(State { tenancy, settings, content, trouble: None }) }
    }

    /// Returns the gateway's settings, as they are now.
    pub fn settings(&self) -> Settings {
        self.state.read().unwrap_or_else(PoisonError::into_inner).settings.clone()
    }

    /// Combines the access with other settings of the gateway. Requests that have begun keep those that they began with.
    pub fn replace_settings(&self, settings: Settings) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.tenancy = Arc::new(state.tenancy.with_settings(&settings));
        state.settings = settings;
    }

    /// Returns the current access.
    pub fn current(&self) -> Arc<Tenancy> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).tenancy.clone()
    }

    /// Returns why the file as it is now can't be used; the access is still that of an earlier one.
    pub(super) fn trouble(&self) -> Option<String> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }

    /// Reads the file again whenever it changes, until `stop`. Requests that have begun keep the access that they began with.
    /// The database numbers each content as soon as it is read.
    pub async fn run(self: Arc<Self>, store: Store, stop: CancellationToken) {
        let Some(path) = self.path.clone() else { return stop.cancelled().await };
        loop {
            // A launch asks again.
            if let Err(error) = self.current().file().generation.number(&store).await {
                tracing::debug!("the access file has no number yet: {}", error_chain(&error));
            }
            if stop.run_until_cancelled(sleep(LOOK)).await.is_none() {
                return;
            }
            self.look_at(&path);
        }
    }

    /// Reads the file again at once if it has changed.
    pub fn look(&self) {
        if let Some(path) = &self.path {
            self.look_at(path);
        }
    }

    /// Compares the file with what was read last. A file that can't be used changes nothing but the log and the readiness text.
    fn look_at(&self, path: &Path) {
        let content = read(path);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let parsed = match content {
            Ok(content) if content == state.content => return,
            Ok(content) => {
                let parsed = parse(path, &content, &state.settings);
                state.content = content;
                parsed
            }
            Err(error) => {
                // When it can be read again, it is, even if it is as it was.
                state.content.clear();
                Err(error)
            }
        };
        match parsed {
            Ok(tenancy) => {
                state.tenancy = Arc::new(tenancy);
                state.trouble = None;
                file_read(METRIC, true);
                tracing::info!(path = %path.display(), "access file reloaded");
            }
            Err(error) => {
                let trouble = error_chain(&error);
                file_read(METRIC, false);
                if state.trouble.as_ref() != Some(&trouble) {
                    tracing::error!("the access file is not reloaded, the previous one stays valid: {trouble}");
                    state.trouble = Some(trouble);
                }
            }
        }
    }
}

fn read(path: &Path) -> Result<String, AccessError> {
    fs::read_to_string(path).map_err(|source| AccessError::Unreadable { path: path.to_owned(), source })
}

fn parse(path: &Path, content: &str, settings: &Settings) -> Result<Tenancy, AccessError> {
    let invalid = |source| AccessError::Invalid { path: path.to_owned(), source: Box::new(source) };
    let access = Access::parse(content).map_err(invalid)?;
    let issuers = access.authentication().map_or(&[][..], |providers| &providers.oidc);
    let consoles = issuers.iter().filter_map(|issuer| issuer.console.as_ref());
    // The secrets are read when they are used, so that they can change.
    for path in consoles.filter_map(|console| console.client_secret_file.as_ref()) {
        read(path)?;
    }
    let jws = access.authentication().and_then(|providers| providers.spark_jws.as_ref());
    let secret = jws.map(|jws| {
        let path = jws.secret_file.clone();
        SharedSecret::parse(&read(&path)?).map_err(|source| AccessError::Secret { path, source })
    });
    let tenancy = Tenancy::new(access, content, secret.transpose()?, settings);
    tenancy.map_err(|source| AccessError::Policy { path: path.to_owned(), source })
}
