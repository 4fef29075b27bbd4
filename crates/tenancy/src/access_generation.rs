//! Which generation of the access file a replica has, so that the verdict of an older one doesn't replace that of a newer one. Files
//! reach replicas at different times, and their clocks differ: the database numbers the contents.

use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use sparkgate_store::{self, Store};

/// A content of the access file.
#[derive(Debug, Default)]
pub struct AccessGeneration {
    digest: String,
    number: OnceCell<i64>,
}

impl AccessGeneration {
    pub fn new(content: &str) -> Self {
        let digest = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { digest, number: OnceCell::new() }
    }

    /// Returns its number. The database is asked once.
    pub async fn number(&self, store: &Store) -> Result<i64, sparkgate_store::Error> {
        self.number.get_or_try_init(|| store.access_generation(&self.digest)).await.copied()
    }

    /// Returns its number if the database was asked.
    pub fn known(&self) -> Option<i64> {
        self.number.get().copied()
    }
}
