//! Opens the store that a URL names.

use std::{
    fs, io,
    path::{Path as FsPath, PathBuf},
    sync::Arc,
    time::Duration,
};

use object_store::{
    BackoffConfig, ObjectStore, ObjectStoreScheme, RetryConfig, aws::AmazonS3Builder, azure::MicrosoftAzureBuilder,
    gcp::GoogleCloudStorageBuilder, local::LocalFileSystem, path::Path,
};
use rustls::crypto::ring;
use url::Url;

use super::FileStore;

/// How long a call of a store is repeated, and may take at all: its caller waits.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRIES: usize = 3;

/// A store can't be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{0:?} is not the URL of a file store: expected a directory such as /var/lib/sparkgate/files, or s3://bucket/prefix, gs://…, az://…"
    )]
    Url(String),
    #[error(
        "{0:?} is not a template of paths: expected a directory or a URL such as s3://logs/{{namespace}}/{{pod}}/{{container}}.log, with \
         {{uid}}, or {{namespace}} and {{pod}}, and no field in the name of the bucket; {{submission}} and {{attempt}} may be used, too"
    )]
    Template(String),
    #[error("the directory {} for files can't be made", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("the file store {url} can't be used")]
    Settings { url: String, source: object_store::Error },
}

impl FileStore {
    /// Opens the store of a URL. The credentials and options of an object store come from the environment, in the variables of its
    /// own tools: `AWS_…`, `GOOGLE_…`, `AZURE_…`. A directory is made if it is missing. Nothing is called.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(url: &str) -> Result<Self, OpenError> {
        if url.starts_with('/') {
            return Self::directory(FsPath::new(url));
        }
        let parsed = Url::parse(url).map_err(|_| OpenError::Url(url.to_owned()))?;
        let (scheme, path) = ObjectStoreScheme::parse(&parsed).map_err(|_| OpenError::Url(url.to_owned()))?;
        let failed = |source| OpenError::Settings { url: url.to_owned(), source };
        // Fails if the process has one already.
        let _ = ring::default_provider().install_default();
        let store: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::Local => {
                let directory = parsed.to_file_path().map_err(|()| OpenError::Url(url.to_owned()))?;
                return Self::directory(&directory);
            }
            ObjectStoreScheme::AmazonS3 => {
                let s3 = AmazonS3Builder::from_env().with_url(url).with_retry(retries());
                Arc::new(s3.build().map_err(failed)?)
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                let gcs = GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retries());
                Arc::new(gcs.build().map_err(failed)?)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let azure = MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retries());
                Arc::new(azure.build().map_err(failed)?)
            }
            _ => return Err(OpenError::Url(url.to_owned())),
        };
        let prefix = Path::parse(path).map_err(|_| OpenError::Url(url.to_owned()))?;
        // A URL may have a password in it; scheme, host and path don't.
        let name = format!("{}://{}{}", parsed.scheme(), parsed.host_str().unwrap_or_default(), parsed.path());
        Ok(Self { store, prefix, directory: None, installation: None, name })
    }

    fn directory(path: &FsPath) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Directory { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let name = path.display().to_string();
        let store = LocalFileSystem::new_with_prefix(&path)
            .map_err(|source| OpenError::Settings { url: name.clone(), source })?;
        // A file that was answered for is on the disk.
        let store = Arc::new(store.with_fsync(true));
        Ok(Self { store, prefix: Path::default(), directory: Some(path), installation: None, name })
    }

    /// Returns the URL of the store, without what may be secret in it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: PATIENCE }
}
