//! Checks the stores of uploaded files and of logs.

use super::finding::Finding;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_files::FileStore;
use sparkgate_store::Store;
use sparkgate_uploads::FileSettings;

/// Checks the store of uploaded files.
pub async fn check_files(store: &FileStore, settings: &FileSettings) -> Finding {
    let place = match &settings.driver_url {
        Some(url) => format!("read them at {url}"),
        None => format!("fetch them from {}", settings.base_url),
    };
    let text = format!("files can be written, read and deleted in {}; drivers {place}", store.name());
    let remedy =
        "check the URL (--files-url), and that the account may write, list, read and delete there (docs/use/files.md)";
    tried("files.store", store, text, remedy).await
}

/// Checks the store of logs.
pub async fn check_logs(store: &FileStore) -> Finding {
    let text = format!("logs can be stored in {} and read", store.name());
    let remedy = "check the store, and the rights of the gateway's credentials to put, get, list and delete objects";
    tried("files.logs", store, text, remedy).await
}

/// Checks that a store belongs to this database, and not to one of which it is a copy. Nothing is written.
pub async fn check_owner(database: &Store, files: FileStore) -> Finding {
    const CHECK: &str = "files.owner";
    let read = async {
        let (installation, generation) = (database.installation().await?, database.generation().await?);
        let owner = files.for_installation(installation.id).owner().await?;
        Ok::<_, Error>((generation, owner))
    };
    match read.await {
        Err(error) => Finding::failure(CHECK, error_chain(&error), "see the checks of the database and of the store"),
        Ok((generation, Some(owner))) if owner != generation.id => Finding::failure(
            CHECK,
            "the store of files belongs to the database that this one is a copy of: nothing is written or deleted there",
            "give --files-url another store; or, if the other database is gone, run `sparkgate adopt-cluster --same-store`",
        ),
        Ok(_) => Finding::ok(CHECK, "the store of files belongs to this database, or to none yet"),
    }
}

/// Writes an object to a store, lists it, reads it and deletes it.
async fn tried(check: &'static str, store: &FileStore, text: String, remedy: &'static str) -> Finding {
    match store.probe().await {
        Ok(()) => Finding::ok(check, text),
        Err(error) => Finding::failure(check, error_chain(&error), remedy),
    }
}
