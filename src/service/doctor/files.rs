//! Checks the store of uploaded files.

use super::Finding;
use crate::{
    files::FileStore,
    service::{FileSettings, error_chain},
};

/// Writes an object to the store, reads it and deletes it.
pub async fn check_files(store: &FileStore, settings: &FileSettings) -> Finding {
    const CHECK: &str = "files.store";
    if let Err(error) = store.probe().await {
        let remedy =
            "check the URL (--files-url), and that the account may write, read and delete there (docs/files.md)";
        return Finding::failure(CHECK, error_chain(&error), remedy);
    }
    let place = match &settings.driver_url {
        Some(url) => format!("read them at {url}"),
        None => format!("fetch them from {}", settings.base_url),
    };
    Finding::ok(CHECK, format!("files can be written, read and deleted in {}; drivers {place}", store.name()))
}
