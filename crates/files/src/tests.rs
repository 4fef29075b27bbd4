use std::fs;

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use futures::TryStreamExt;
use sha2::{Digest, Sha256};

use uuid::Uuid;

use super::{Error, FileStore, OldObject, OpenError};

const MIB: usize = 1 << 20;

/// Returns a store in a directory, or, to try another kind, at the URL in `SPARKGATE_TEST_FILES_URL`.
fn store() -> (FileStore, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().to_str().unwrap().to_owned();
    let url = std::env::var("SPARKGATE_TEST_FILES_URL").unwrap_or(own);
    (FileStore::open(&url).unwrap().for_installation(Uuid::new_v4()), dir)
}

/// Returns the whole content of an object.
async fn whole(store: &FileStore, key: &str, size: u64) -> Result<Vec<u8>, Error> {
    let parts: Vec<Bytes> = store.read(key, 0..size).await?.try_collect().await?;
    Ok(parts.concat())
}

async fn written(store: &FileStore, content: &[u8]) -> String {
    let mut upload = store.begin("red");
    for piece in content.chunks(MIB / 2) {
        upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    assert_eq!(upload.size(), content.len() as u64);
    assert_eq!(upload.digest(), <[u8; 32]>::from(Sha256::digest(content)));
    upload.finish().await.unwrap()
}

#[tokio::test]
async fn content_of_any_size_is_read_as_it_was_written() {
    let (store, _dir) = store();
    for size in [0, 1, 5 * MIB, 13 * MIB + 7] {
        let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let key = written(&store, &content).await;
        assert!(key.starts_with("red/"), "{key}");
        assert!(whole(&store, &key, size as u64).await.unwrap() == content, "{size}");
        if size > 100 {
            let part: Vec<Bytes> = store.read(&key, 3..10).await.unwrap().try_collect().await.unwrap();
            assert_eq!(part.concat(), content[3..10]);
        }
    }
}

#[tokio::test]
async fn an_upload_that_is_not_finished_is_no_object() {
    let (store, _dir) = store();
    for abort in [true, false] {
        let mut upload = store.begin("red");
        upload.write(Bytes::from(vec![7; 12 * MIB])).await.unwrap();
        let all: Vec<OldObject> = store.older_than(Utc::now() + TimeDelta::hours(1)).try_collect().await.unwrap();
        assert!(all.is_empty(), "{all:?}");
        if abort { upload.abort().await } else { drop(upload) }
    }
}

#[tokio::test]
async fn parts_of_uploads_to_a_directory_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let id = Uuid::new_v4();
    let store = FileStore::open(dir.path().to_str().unwrap()).unwrap().for_installation(id);
    // What a process leaves behind that was killed.
    let folder = dir.path().join(id.to_string()).join("red");
    assert_eq!(store.delete_parts_older_than(Utc::now()).await.unwrap(), 0, "there is no folder yet");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("some-key#1"), "half").unwrap();
    fs::write(folder.join("some-key"), "whole").unwrap();
    assert_eq!(store.delete_parts_older_than(Utc::now() - TimeDelta::hours(1)).await.unwrap(), 0, "too young");
    assert_eq!(store.delete_parts_older_than(Utc::now() + TimeDelta::hours(1)).await.unwrap(), 1);
}

#[tokio::test]
async fn a_deleted_object_is_missing_and_may_be_deleted_again() {
    let (store, _dir) = store();
    let key = written(&store, b"content").await;
    let all: Vec<OldObject> = store.older_than(Utc::now() + TimeDelta::hours(1)).try_collect().await.unwrap();
    assert_eq!(all, [OldObject { key: key.clone(), original: key.clone() }]);
    assert!(store.has(&key).await.unwrap());
    store.delete(&key).await.unwrap();
    store.delete(&key).await.unwrap();
    assert!(!store.has(&key).await.unwrap());
    assert!(matches!(whole(&store, &key, 7).await, Err(Error::Missing { .. })));
}

#[test]
fn a_url_names_a_directory_or_an_object_store() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("a/b");
    assert!(FileStore::open(&format!("file://{}", inner.display())).is_ok() && inner.is_dir());
    for nonsense in ["", "files", "ftp://x/y", "https://example.org/x", "memory:///"] {
        assert!(matches!(FileStore::open(nonsense), Err(OpenError::Url(_))), "{nonsense}");
    }
    fs::write(dir.path().join("file"), "").unwrap();
    let taken = FileStore::open(dir.path().join("file").to_str().unwrap());
    assert!(matches!(taken, Err(OpenError::Directory { .. })), "{taken:?}");
}

#[tokio::test]
async fn a_copy_has_the_name_of_its_file_and_is_deleted_with_its_object() {
    let (store, _dir) = store();
    let (key, other) = (written(&store, b"content").await, written(&store, b"other").await);
    for name in ["job.py", "my job [1].py", "job.py"] {
        store.copy_by_name(&key, name).await.unwrap();
    }
    store.copy_by_name(&other, "job.py").await.unwrap();
    let place = store.place_by_name(&key, "my%20job.py");
    let (tenant, object) = key.split_once('/').unwrap();
    assert!(place.ends_with(&format!("/{tenant}/by-name/{object}/my%20job.py")), "{place}");

    let all = async || {
        let all: Vec<OldObject> = store.older_than(Utc::now() + TimeDelta::hours(1)).try_collect().await.unwrap();
        all.into_iter().filter(|each| each.key != each.original).collect::<Vec<_>>()
    };
    let copies = all().await;
    let of = |key: &str| copies.iter().filter(|copy| copy.original == key).count();
    assert_eq!((of(&key), of(&other)), (2, 1), "{copies:?}");
    assert!(copies.iter().any(|copy| copy.key.ends_with("/my job [1].py")), "{copies:?}");
    store.delete_copies(&key).await.unwrap();
    store.delete_copies(&key).await.unwrap();
    assert_eq!(all().await.into_iter().map(|copy| copy.original).collect::<Vec<_>>(), [other]);
    assert!(matches!(store.copy_by_name("red/none", "job.py").await, Err(Error::Missing { .. })));
}

#[tokio::test]
async fn a_probe_tells_whether_a_store_can_be_used() {
    let (store, dir) = store();
    store.probe().await.unwrap();
    if std::env::var("SPARKGATE_TEST_FILES_URL").is_err() {
        let left = walk(dir.path());
        assert!(left.is_empty(), "{left:?}");
        fs::remove_dir_all(dir.path()).unwrap();
        fs::write(dir.path(), "no directory").unwrap();
        assert!(store.probe().await.is_err());
        fs::remove_file(dir.path()).unwrap();
        fs::create_dir(dir.path()).unwrap();
    }
}

/// Returns all files below a directory.
fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
