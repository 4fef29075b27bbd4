//! The upload of one object.

use bytes::Bytes;
use object_store::buffered::BufWriter;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use super::{Error, FileStore};

/// The size of the parts in which larger objects are sent: the smallest that S3 accepts.
const PART: usize = 5 << 20;
/// Parts that are sent at the same time, besides the one that fills up.
const IN_FLIGHT: usize = 2;

/// The SHA-256 of some content.
pub type Digest = [u8; 32];

/// An object that is being written. It exists once [`Upload::finish`] has returned, and never in part.
#[derive(Debug)]
pub struct Upload {
    store: FileStore,
    key: String,
    writer: BufWriter,
    hash: Sha256,
    size: u64,
}

impl Upload {
    pub(super) fn new(store: &FileStore, tenant: &str) -> Self {
        // Two levels, so that an operator sees what belongs to whom.
        let key = format!("{}/{}", tenant_folder(tenant), Uuid::new_v4());
        let writer =
            BufWriter::with_capacity(store.store.clone(), store.path(&key), PART).with_max_concurrency(IN_FLIGHT);
        Self { store: store.clone(), key, writer, hash: Sha256::new(), size: 0 }
    }

    /// Adds bytes. Waits while too many are on their way to the store.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.size += bytes.len() as u64;
        self.hash.update(&bytes);
        self.writer.put(bytes).await.map_err(|error| self.store.error("writing a file", &self.key, error))
    }

    /// Returns the number of bytes that were added.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the digest of the bytes that were added.
    pub fn digest(&self) -> Digest {
        self.hash.clone().finalize().into()
    }

    /// Completes the object and returns its key.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the object may exist, under a key that is not used.
    pub async fn finish(mut self) -> Result<String, Error> {
        match self.writer.shutdown().await {
            Ok(()) => Ok(self.key),
            Err(error) => Err(self.store.io("completing a file", error)),
        }
    }

    /// Discards what was written.
    pub async fn abort(mut self) {
        // What is left behind belongs to no file, and is swept later.
        let _ = self.writer.abort().await;
    }
}

/// Returns the folder of a tenant: its name, with other characters than those of names replaced.
pub fn tenant_folder(tenant: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    tenant.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}
