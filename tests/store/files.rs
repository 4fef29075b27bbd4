//! Files on a real Postgres: one row for each content of a tenant, its uses, and its end.

use std::{collections::BTreeMap, time::Duration};

use futures::future::join_all;
use sparkgate::{
    store::{AddedFile, AddedPart, FilePart, FileRecord, FileUpload, NewFile, Received, Scope, Store, UsedFile},
    submission::SubmissionId,
};
use sqlx::PgPool;

use crate::support::{accept, draw};

const HOUR: Duration = Duration::from_secs(3600);

fn file(tenant: &str, content: &str, size: u64, object: &str) -> NewFile {
    let record = FileRecord { sha256: content.to_owned(), size, object: object.to_owned() };
    NewFile { tenant: tenant.to_owned(), principal: "corp:alice".to_owned(), record }
}

async fn add(store: &Store, tenant: &str, content: &str, object: &str) {
    assert_eq!(store.add_file(&file(tenant, content, 10, object), None, None).await.unwrap(), AddedFile::Added);
}

/// Returns files with the names under which a submission uses them.
fn named(contents: &[&str]) -> BTreeMap<String, String> {
    contents.iter().map(|content| ((*content).to_owned(), format!("{content}.py"))).collect()
}

async fn end(pool: &PgPool, id: &SubmissionId) {
    let end = "UPDATE submissions SET state = 'FINISHED', finished_at = now() WHERE id = $1";
    sqlx::query(end).bind(id.as_str()).execute(pool).await.unwrap();
}

async fn age(pool: &PgPool, table: &str, column: &str) {
    let age = format!("UPDATE {table} SET {column} = {column} - interval '2 hours'");
    sqlx::raw_sql(sqlx::AssertSqlSafe(age)).execute(pool).await.unwrap();
}

#[sqlx::test]
async fn concurrent_uploads_of_one_content_make_one_file_of_each_tenant(pool: PgPool) {
    let store = Store::new(pool.clone());
    let uploads = (0..40).map(|n| {
        let (store, tenant) = (store.clone(), if n % 2 == 0 { "red" } else { "blue" });
        async move { store.add_file(&file(tenant, "aa", 10, &format!("object-{n}")), Some(1000), None).await.unwrap() }
    });
    let added = join_all(uploads).await;
    assert_eq!(added.iter().filter(|added| **added == AddedFile::Added).count(), 2);
    assert!(added.iter().all(|added| *added != AddedFile::Full(0)));

    let of = |tenant: &str| store.scoped(&Scope::of(vec![tenant.to_owned()], vec![], "corp:alice"));
    let red = of("red").file("red", "aa").await.unwrap().unwrap();
    assert_ne!(red.object, of("blue").file("blue", "aa").await.unwrap().unwrap().object);
    assert_eq!(of("blue").file("red", "aa").await.unwrap(), None, "another tenant's");
    assert_eq!(store.touch_file("red", "aa").await.unwrap(), Some(red));
}

#[sqlx::test]
async fn a_quota_counts_the_bytes_of_a_tenant(pool: PgPool) {
    let store = Store::new(pool.clone());
    for n in 0..8 {
        let added =
            store.add_file(&file("red", &format!("{n:02}"), 10, &format!("object-{n}")), Some(55), None).await.unwrap();
        assert_eq!(added, if n < 5 { AddedFile::Added } else { AddedFile::Full(50) });
    }
    assert_eq!(store.file_bytes("red").await.unwrap(), 50);
    // A file that the tenant has needs no room.
    let kept: String = sqlx::query_scalar("SELECT sha256 FROM files LIMIT 1").fetch_one(&pool).await.unwrap();
    let again = file("red", &kept, 10, "again");
    assert_eq!(store.add_file(&again, Some(55), None).await.unwrap(), AddedFile::Existing);
    assert_eq!(store.add_file(&file("blue", "aa", 10, "blue"), Some(55), None).await.unwrap(), AddedFile::Added);
}

#[sqlx::test]
async fn an_upload_replaces_only_the_object_that_it_found_lost(pool: PgPool) {
    let store = Store::new(pool);
    add(&store, "red", "aa", "first").await;
    let object = async || store.all().file("red", "aa").await.unwrap().unwrap().object;
    let second = file("red", "aa", 10, "second");
    assert_eq!(store.add_file(&second, None, Some("other")).await.unwrap(), AddedFile::Existing);
    assert_eq!(object().await, "first");
    assert_eq!(store.add_file(&second, None, Some("first")).await.unwrap(), AddedFile::Added);
    assert_eq!(object().await, "second");
}

#[sqlx::test]
async fn a_file_is_deleted_after_the_end_of_its_last_submission(pool: PgPool) {
    let store = Store::new(pool.clone());
    add(&store, "default", "aa", "a").await;
    add(&store, "default", "bb", "b").await;
    let id = accept(&store, "pod").await;
    let used = store.use_files(&id, "default", &named(&["aa", "cc"])).await.unwrap();
    assert_eq!(used.iter().map(|file| file.sha256.as_str()).collect::<Vec<_>>(), ["aa"]);
    assert_eq!(store.files_of(&id).await.unwrap(), used);
    let name = async || store.all().files("default", None, 10).await.unwrap().pop().unwrap().name;
    assert_eq!(name().await.as_deref(), Some("aa.py"));
    let accepted = "SELECT created_at FROM submissions WHERE id = $1";
    let accepted_at = sqlx::query_scalar(accepted).bind(id.as_str()).fetch_one(&pool).await.unwrap();
    let live = UsedFile { file: used[0].clone(), owner: "default".to_owned(), ended: false, accepted_at };
    assert_eq!(store.used_file(&id, "aa").await.unwrap(), Some(live.clone()));
    assert_eq!(store.used_file(&id, "bb").await.unwrap(), None);

    age(&pool, "files", "last_used_at").await;
    age(&pool, "file_uses", "created_at").await;
    assert_eq!(store.release_files(100).await.unwrap(), 0);
    assert_eq!(store.delete_unused_files(HOUR, 100, None).await.unwrap(), ["b"], "the other one is used");

    end(&pool, &id).await;
    assert_eq!(store.used_file(&id, "aa").await.unwrap(), Some(UsedFile { ended: true, ..live }));
    assert_eq!(store.release_files(100).await.unwrap(), 1);
    assert!(store.delete_unused_files(HOUR, 100, None).await.unwrap().is_empty(), "it was used until now");
    assert_eq!(name().await.as_deref(), Some("aa.py"), "the last name stays");
    age(&pool, "files", "last_used_at").await;
    let doubted = chrono::Utc::now() - chrono::TimeDelta::hours(1);
    assert!(store.delete_unused_files(HOUR, 100, Some(doubted)).await.unwrap().is_empty());
    assert_eq!(store.delete_unused_files(HOUR, 100, None).await.unwrap(), ["a"]);
}

#[sqlx::test]
async fn files_of_a_submission_that_was_never_accepted_are_released_later(pool: PgPool) {
    let store = Store::new(pool.clone());
    add(&store, "default", "aa", "a").await;
    let drawn = draw(&store).await;
    store.use_files(&drawn.id, "default", &named(&["aa"])).await.unwrap();
    assert_eq!(store.release_files(100).await.unwrap(), 0, "it may be accepted yet");
    age(&pool, "file_uses", "created_at").await;
    assert_eq!(store.release_files(100).await.unwrap(), 1);
}

#[sqlx::test]
async fn objects_without_a_file_are_found(pool: PgPool) {
    let store = Store::new(pool);
    add(&store, "red", "aa", "red/1").await;
    let objects = ["red/1", "red/2", "blue/1"].map(str::to_owned);
    assert_eq!(store.orphaned_objects(&objects).await.unwrap(), ["red/2", "blue/1"]);
}

fn upload<'a>(sha256: &'a str, principal: &'a str) -> FileUpload<'a> {
    FileUpload { tenant: "red", sha256, principal }
}

fn part(object: &str, size: u64) -> FilePart {
    FilePart { object: object.to_owned(), size }
}

#[sqlx::test]
async fn parts_of_an_upload_are_added_where_it_ends(pool: PgPool) {
    let store = Store::new(pool);
    let ours = upload("aa", "corp:alice");
    let append = async |upload: FileUpload<'_>, offset: u64, object: &str, size: u64| {
        store.add_file_part(upload, offset, &part(object, size), None).await.unwrap()
    };
    assert_eq!(append(ours, 5, "early", 5).await, AddedPart::Elsewhere, "it hasn't begun");
    assert_eq!(append(ours, 0, "one", 5).await, AddedPart::Added(5));
    assert_eq!(append(ours, 0, "again", 5).await, AddedPart::Elsewhere);
    assert_eq!(append(upload("aa", "corp:bob"), 0, "bobs", 2).await, AddedPart::Added(2), "an upload of its own");
    // Of several at the same place, one is added.
    let parts: Vec<String> = (0..20).map(|n| format!("part-{n}")).collect();
    let added = join_all(parts.iter().map(|object| append(ours, 5, object, 7))).await;
    assert_eq!(added.iter().filter(|added| **added == AddedPart::Added(12)).count(), 1, "{added:?}");

    let stored = store.file_parts(ours).await.unwrap();
    assert_eq!((stored.len(), &stored[0], stored[1].size), (2, &part("one", 5), 7));
    let of = |tenant: &str| store.scoped(&Scope::of(vec![tenant.to_owned()], vec![], "corp:alice"));
    assert_eq!(of("red").received(ours).await.unwrap(), Received { bytes: 12, parts: 2 });
    assert_eq!(of("blue").received(ours).await.unwrap(), Received::default(), "another tenant's");
    let objects = ["one", "bobs", "again"].map(str::to_owned);
    assert_eq!(store.orphaned_objects(&objects).await.unwrap(), ["again"]);

    assert!(store.delete_uploads_of_file("red", "aa").await.unwrap().is_empty(), "the file isn't there yet");
    assert_eq!(store.delete_file_upload(ours).await.unwrap().len(), 2);
    add(&store, "red", "aa", "whole").await;
    assert_eq!(store.delete_uploads_of_file("red", "aa").await.unwrap(), ["bobs"]);
}

#[sqlx::test]
async fn parts_count_for_the_quota_until_their_file_is_there(pool: PgPool) {
    let store = Store::new(pool.clone());
    let most = Some(30);
    let ours = upload("aa", "corp:alice");
    assert_eq!(store.add_file_part(ours, 0, &part("one", 10), most).await.unwrap(), AddedPart::Added(10));
    assert_eq!(store.add_file_part(ours, 10, &part("two", 15), most).await.unwrap(), AddedPart::Added(25));
    assert_eq!(store.add_file_part(ours, 25, &part("three", 6), most).await.unwrap(), AddedPart::Full(25));
    assert_eq!(store.file_bytes("red").await.unwrap(), 25);
    assert_eq!(store.add_file(&file("red", "bb", 6, "b"), most, None).await.unwrap(), AddedFile::Full(25));
    // Its own parts go when it is there.
    assert_eq!(store.add_file(&file("red", "aa", 25, "a"), most, None).await.unwrap(), AddedFile::Added);
    store.delete_uploads_of_file("red", "aa").await.unwrap();
    assert_eq!(store.file_bytes("red").await.unwrap(), 25);
}
