//! The plans of the statements that the loops of a replica run, on a database with many old rows: none may read them all to find
//! one. A statement that takes the first rows, or the largest or smallest value, can get a plan that walks an index past all of them.
//!
//! The loops run; Postgres explains each of their statements after its execution. The statements are found in the source, so that no
//! new one is left out.

mod explained;
mod old_rows;
mod source;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use sparkgate::{
    access::{Grant, Principal, Provider, Role},
    files::FileStore,
    service::{AccessFile, CleanUpSettings, ConnectSettings, FileSettings, Pace, Service, Session, Setup},
    spark::{CreateSubmissionRequest, SparkVersion},
    store::{DatabaseSettings, Drawn, Period, Store},
};
use sqlx::{ConnectOptions, PgPool};
use tempfile::NamedTempFile;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use self::{explained::Explained, source::Fragment};
use crate::in_memory;

/// Old rows of each table, and how many rows a statement may read.
const OLD: i64 = 100_000;
const MOST: f64 = 10_000.0;
/// How long the loops may take for their first rounds.
const PATIENCE: Duration = Duration::from_secs(90);

#[sqlx::test]
async fn no_statement_of_a_loop_reads_all_old_rows(pool: PgPool) {
    old_rows::write(&pool, OLD).await;
    explained::explain_all(&pool).await;
    let explained = Explained::begin();
    let url = pool.connect_options().to_url_lossy().to_string();
    let store = Store::connect(&DatabaseSettings { url, max_connections: 16 }).await.unwrap();
    let (service, _kept) = service(store.clone()).await;
    for number in 0..6 {
        submit(&service, number).await;
    }
    let mut loops = JoinSet::new();
    let stop = CancellationToken::new();
    loops.spawn(service.leadership.clone().run_renewal(stop.clone()));
    let day = Duration::from_secs(24 * 3600);
    let settings = CleanUpSettings { finished_pod_ttl: Some(day), retention: Some(day * 90) };
    for (_, run) in service.loops(settings, &stop) {
        loops.spawn(run);
    }

    now_and_then(&store).await;
    let of_loops = source::of_loops();
    let ends = Instant::now() + PATIENCE;
    let unseen = loop {
        let texts = explained.texts();
        let unseen: Vec<&Fragment> =
            of_loops.iter().filter(|fragment| !texts.iter().any(|text| text.contains(&fragment.text))).collect();
        if unseen.is_empty() || Instant::now() > ends {
            break unseen;
        }
        sleep(Duration::from_millis(200)).await;
    };
    stop.cancel();
    loops.shutdown().await;
    let greedy: BTreeSet<String> = explained.reading_more_than(MOST);
    assert!(greedy.is_empty(), "statements that read more than {MOST} rows:\n{}", Vec::from_iter(greedy).join("\n"));
    assert!(explained.notices(&pool).await, "a statement that walks an index past all old rows is noticed");
    assert!(
        unseen.is_empty(),
        "no loop ran these statements in {PATIENCE:?}; if none does, add them to NOT_OF_LOOPS:\n{}",
        unseen.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn exceptions_are_still_in_the_source() {
    assert_eq!(source::stale_exceptions(), Vec::<String>::new());
}

/// Returns a gateway with all features, and the files that it needs.
async fn service(store: Store) -> (Service, (NamedTempFile, tempfile::TempDir)) {
    let (access, dir) = (NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
    let text = "authentication: {}\ntenants: {t: {namespaces: [default]}}\nqueues: {q: {caps: {cores: 4}}}\n";
    std::fs::write(access.path(), text).unwrap();
    let settings = in_memory::settings(in_memory::spark(SparkVersion::V4_3));
    let file = AccessFile::open(access.path().to_owned(), settings).unwrap();
    let objects = FileStore::open(dir.path().to_str().unwrap()).unwrap();
    let settings = FileSettings {
        base_url: "http://gateway:6066".to_owned(),
        driver_url: None,
        largest: 1 << 20,
        part: 1 << 20,
        unused_ttl: Some(Duration::from_secs(3600)),
        patience: Duration::from_secs(1),
        pace: Pace::SLOWEST,
    };
    let files = Some((objects, settings));
    let connect = ConnectSettings { listen: Some(([127, 0, 0, 1], 0).into()), ..ConnectSettings::default() };
    let setup = Setup { files, connect, ..Setup::from(file) };
    (in_memory::started(store, in_memory::cluster(), setup).await, (access, dir))
}

/// Runs what a replica runs only when the overview is open, an administrator asks for figures, a sequence is behind, or the audit is old.
async fn now_and_then(store: &Store) {
    store.all().recent(Period::Day).await.unwrap();
    store.live_counts().await.unwrap();
    let drawn = store.draw().await.unwrap();
    store.draw_beyond(&Drawn { number: OLD - 5, ..drawn }).await.unwrap();
    store.move_event_ids().await.unwrap();
    store.prune_audit(Duration::from_secs(90 * 24 * 3600), 1000).await.unwrap();
}

async fn submit(service: &Service, number: u32) {
    let grant = Grant::in_tenant(Role::Operator, "t").unwrap();
    let principal = Principal::new(Provider::ApiKey, "x").unwrap().with_grants(vec![grant]);
    let caller = Session::new(Arc::new(principal), service.access.current(), None, "test");
    let properties = [("spark.kubernetes.namespace", "default"), ("spark.app.name", "new")];
    let request = CreateSubmissionRequest {
        app_resource: "local:///opt/app.jar".to_owned(),
        main_class: "org.example.Main".to_owned(),
        app_args: vec![number.to_string()],
        spark_properties: properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..CreateSubmissionRequest::default()
    };
    service.submissions.create(&caller, request).await.unwrap();
}
