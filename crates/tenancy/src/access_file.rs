//! The access file: read at the start, and again when it changes.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use tokio_util::sync::CancellationToken;

use crate::tenancy::{PolicyFaults, Tenancy};
use sparkgate_access::{
    Access, AccessFileError,
    jwt::{SharedSecret, SharedSecretError},
};
use sparkgate_common::{
    error::error_chain,
    watched::{self, Watched, time_to_look},
};
use sparkgate_requests::settings::Settings;
use sparkgate_store::Store;

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
    tenancy: Watched<Tenancy>,
    /// The gateway's settings that the access is combined with. They change while the tenancy is locked.
    settings: RwLock<Settings>,
}

impl AccessFile {
    /// Returns the access of a gateway without a file: callers aren't authenticated, and there is one tenant.
    pub fn none(settings: Settings) -> Self {
        let tenancy = Watched::fixed(Tenancy::open(&settings));
        Self { path: None, tenancy, settings: RwLock::new(settings) }
    }

    /// Returns the name of the tenant that a namespace belongs to; empty if it belongs to none.
    pub fn tenant_of(&self, namespace: &str) -> String {
        let current = self.current();
        current.access().tenant_of_namespace(namespace).map(|tenant| tenant.name.clone()).unwrap_or_default()
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn open(path: PathBuf, settings: Settings) -> Result<Self, AccessError> {
        let text = read(&path)?;
        let tenancy = parse(&path, &text, &settings)?;
        let content = Content { text, secret: secret_of(&tenancy) };
        let tenancy = Watched::new(METRIC, tenancy, &content);
        Ok(Self { path: Some(path), tenancy, settings: RwLock::new(settings) })
    }

    /// Returns the gateway's settings, as they are now.
    pub fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Combines the access with other settings of the gateway. Requests that have begun keep those that they began with.
    pub fn replace_settings(&self, settings: Settings) {
        self.tenancy.change(|tenancy| {
            let tenancy = tenancy.with_settings(&settings);
            *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
            tenancy
        });
    }

    /// Returns the current access.
    pub fn current(&self) -> Arc<Tenancy> {
        self.tenancy.current()
    }

    /// Returns why the file as it is now can't be used; the access is still that of an earlier one.
    pub fn trouble(&self) -> Option<String> {
        self.tenancy.trouble()
    }

    /// Reads the file again whenever it changes, until `stop`. Requests that have begun keep the access that they began with.
    /// The database numbers each content as soon as it is read.
    pub async fn run(self: Arc<Self>, store: Store, stop: CancellationToken) {
        if self.path.is_none() {
            return stop.cancelled().await;
        }
        loop {
            // A launch asks again.
            if let Err(error) = self.current().file().generation.number(&store).await {
                tracing::debug!("the access file has no number yet: {}", error_chain(&error));
            }
            if !time_to_look(&stop).await {
                return;
            }
            self.reload_if_changed();
        }
    }

    /// Compares the file, and the secret of Spark's tokens that it names, with what was read last. A file that can't be used changes
    /// nothing but the log and the readiness text.
    pub fn reload_if_changed(&self) {
        let Some(path) = &self.path else { return };
        let content = read(path).map(|text| Content { text, secret: secret_of(&self.current()) });
        match self.tenancy.take(content, |content| parse(path, &content.text, &self.settings())) {
            None => {}
            Some(Ok(_)) => tracing::info!(path = %path.display(), "access file reloaded"),
            Some(Err(trouble)) => {
                tracing::error!("the access file is not reloaded, the previous one stays valid: {trouble}");
            }
        }
    }
}

/// What the access was read from.
struct Content {
    text: String,
    /// What the file of the secret of Spark's tokens has.
    secret: Option<String>,
}

impl watched::Content for Content {
    fn digest(&self) -> [u8; 32] {
        let Self { text, secret } = self;
        format!("{text}\0{}", secret.as_deref().unwrap_or_default()).digest()
    }
}

/// Returns what the file has that an access names for the secret of Spark's tokens. A file that can't be read has nothing.
fn secret_of(tenancy: &Tenancy) -> Option<String> {
    let jws = tenancy.access().authentication()?.spark_jws.as_ref()?;
    fs::read_to_string(&jws.secret_file).ok()
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
