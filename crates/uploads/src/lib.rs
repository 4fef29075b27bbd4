//! Uploaded files: takes them from clients, keeps them for submissions, and serves them to drivers and executors.
//!
//! A file is its content, named by its SHA-256. Each tenant has its own: neither a hash nor a signed URL leads to a file of another
//! one. Requests name a file by a reference ([`mod@reference`]), which becomes a URL of this gateway when the driver is launched.

pub mod clean_up;
mod download;
mod form;
pub mod launch;
mod list;
mod pace;
mod parts;
pub mod reference;
mod signature;
mod submit;
mod sweep;
mod upload;

use std::{fmt, sync::Arc, time::Duration};

use sparkgate_access::{Action, Tenant};
use sparkgate_common::{
    error::{Error, count_failure, error_chain},
    rate_limits::FetchLimits,
    shares::Shares,
    store_owner::StoreOwner,
};
use sparkgate_files::{self, FileStore};
use sparkgate_metrics::metrics;
use sparkgate_spark::Refusal;
use sparkgate_store::Store;
use sparkgate_submission::Installation;
use sparkgate_tenancy::session::Session;

pub use download::{Download, Fetched};
pub use form::FormFiles;
pub use list::{FilePage, ListedFile};
pub use pace::Pace;
pub use parts::{NewPart, Resumed};
pub use upload::Uploaded;

/// Uploads of one caller at the same time; of all, twice as many. Each holds up to three parts of 5 MiB in memory. More wait.
const UPLOADS: usize = 8;
/// Downloads by one submission or caller at the same time; of all, twice as many. Each holds a part of 1 MiB. More wait.
const DOWNLOADS: usize = 32;

/// Where files are kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// The URL of this gateway for drivers and executors.
    pub base_url: String,
    /// The URL of the store for drivers and executors that read it themselves, such as `s3a://bucket/prefix`.
    pub driver_url: Option<String>,
    /// The largest file, in bytes.
    pub largest: u64,
    /// The size of the parts in which an upload is kept that can be continued, in bytes.
    pub part: u64,
    /// How long a file is kept that no submission uses; `None` means forever.
    pub unused_ttl: Option<Duration>,
    /// How long a driver or an executor waits for its file while the database or the store is away.
    pub patience: Duration,
    /// How slow a client may be.
    pub pace: Pace,
}

impl FileSettings {
    /// Spark's own timeout is a minute (`spark.files.fetchTimeout`), and it doesn't try again.
    pub const PATIENCE: Duration = Duration::from_secs(40);
    /// An upload loses at most so much when its gateway is killed.
    pub const PART: u64 = 64 << 20;
}

/// A file can't be uploaded or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The gateway has no file store.
    #[error("this gateway keeps no files: its operator can set --files-url")]
    Off,
    #[error("there is no file {sha256} in tenant {tenant}")]
    NotFound { sha256: String, tenant: String },
    /// A signed URL is not one of this gateway.
    #[error("the URL is not one that this gateway has signed")]
    NotSigned,
    /// A signed URL was valid as long as its submission was live.
    #[error("submission {0} has ended, and the URLs of its files with it")]
    Ended(String),
    #[error("a file has at most {0} bytes here")]
    TooLarge(u64),
    #[error("the content has the SHA-256 {actual}, not {expected}")]
    Mismatch { expected: String, actual: String },
    #[error(
        "the files of tenant {tenant} take {bytes} bytes; with this one they would exceed its limit `fileBytes`, {most}"
    )]
    Quota { tenant: String, bytes: u64, most: u64 },
    /// The client sent too little for too long.
    #[error("the upload is too slow after {0} bytes: at least {each} bytes a second have to arrive", each = .1.bytes_per_second)]
    TooSlow(u64, Pace),
    /// The client didn't send all of it.
    #[error("the upload broke off after {0} bytes: {1}")]
    Broken(u64, String),
    /// The client has sent too many small parts.
    #[error("the upload has {0} parts already: send larger ones")]
    TooManyParts(u64),
    /// Live submissions use the file that is to be deleted.
    #[error("{}", uses(*.0))]
    Used(u64),
    /// Other uploads or downloads take all places.
    #[error("too many files are being transferred at once")]
    Busy,
    #[error(transparent)]
    Service(#[from] Error),
}

fn uses(count: u64) -> String {
    if count == 1 { "a live submission uses it".to_owned() } else { format!("{count} live submissions use it") }
}

impl From<sparkgate_files::Error> for FileError {
    fn from(error: sparkgate_files::Error) -> Self {
        Self::Service(error.into())
    }
}

impl From<sparkgate_store::Error> for FileError {
    fn from(error: sparkgate_store::Error) -> Self {
        Self::Service(error.into())
    }
}

impl FileError {
    /// Returns the outcome of an upload, for metrics.
    fn outcome(&self) -> &'static str {
        match self {
            Self::Broken(..) => "broken",
            Self::TooSlow(..) => "slow",
            Self::Mismatch { .. } => "mismatch",
            Self::Quota { .. } => "quota",
            Self::Busy => "busy",
            Self::Service(Error::FilesUnavailable(_)) => "store",
            Self::Service(Error::Unavailable(_) | Error::PerhapsDone(_)) => "database",
            Self::Service(Error::Internal(..)) => "internal",
            _ => "refused",
        }
    }
}

/// The files of all tenants.
pub struct Files {
    store: Store,
    installation: Arc<Installation>,
    /// `None` if the gateway keeps no files.
    kept: Option<Kept>,
    /// By tenant and caller.
    uploads: Shares,
    /// By tenant, and by submission or caller.
    downloads: Shares,
    fetches: FetchLimits,
}

/// Where files are kept.
struct Kept {
    objects: FileStore,
    settings: FileSettings,
    owner: StoreOwner,
}

impl Kept {
    /// Checks that files may be written: the store isn't that of a database of which this one is a copy.
    async fn check_owner(&self) -> Result<(), FileError> {
        Ok(self.owner.check(&self.objects).await?)
    }

    /// Deletes an object that is not needed, with its copies.
    async fn delete(&self, object: &str) {
        if !self.owner.may_delete(&self.objects).await {
            return;
        }
        let deleted = async {
            self.objects.delete(object).await?;
            match self.settings.driver_url {
                Some(_) => self.objects.delete_copies(object).await,
                None => Ok(()),
            }
        };
        if let Err(error) = deleted.await {
            count_failure(&error);
            tracing::warn!(object, "an object that is not needed is left to the next sweep: {}", error_chain(&error));
        }
    }

    async fn delete_all(&self, objects: &[String]) {
        for object in objects {
            self.delete(object).await;
        }
    }
}

/// Counts an upload that has ended.
fn count(outcome: &'static str) {
    metrics().file_uploads.with([outcome]).inc();
}

impl Files {
    pub fn new(store: Store, installation: Arc<Installation>, kept: Option<(FileStore, FileSettings)>) -> Self {
        let kept = kept.map(|(objects, settings)| {
            let objects = objects.for_installation(installation.id);
            Kept { objects, settings, owner: StoreOwner::new(store.clone()) }
        });
        let (uploads, downloads) = (Shares::new(UPLOADS), Shares::new(DOWNLOADS));
        Self { store, installation, kept, uploads, downloads, fetches: FetchLimits::default() }
    }

    /// Returns whether this gateway keeps files.
    pub fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns how many files are being uploaded.
    pub fn uploading(&self) -> usize {
        self.uploads.held()
    }

    /// Returns how many files are being read.
    pub fn downloading(&self) -> usize {
        self.downloads.held()
    }

    fn kept(&self) -> Result<&Kept, FileError> {
        self.kept.as_ref().ok_or(FileError::Off)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("kept", &self.kept.as_ref().map(|kept| kept.objects.name()))
            .finish_non_exhaustive()
    }
}

/// Returns the tenant whose files a request concerns: that of a submission with the same namespace.
fn tenant<'a>(caller: &'a Session, namespace: Option<&str>) -> Result<&'a Tenant, Error> {
    if let Some(tenant) = namespace.and_then(|namespace| caller.access().tenant_of_namespace(namespace)) {
        caller.aims_at(&tenant.name);
    }
    caller.require(Action::Submit)?;
    let tenant = caller.access().tenant_for(caller.principal(), namespace);
    tenant.map_err(|error| Refusal::field("namespace", error.to_string()).into())
}
