//! Logs that outlast their pods, in a store.

use std::{fs, path::Path};

use chrono::{TimeDelta, Utc};
use http_body_util::BodyExt;
use sparkgate::{
    files::CollectedLogs,
    service::{Log, LogRequest, LogSource},
    submission::{DriverState, SubmissionId},
};
use sqlx::PgPool;

use super::{
    WAIT,
    site::{Site, follow, read_until, tail, text},
};
use crate::world::eventually;

const EXECUTOR: LogRequest = LogRequest {
    executor: Some(7),
    attempt: None,
    tail: None,
    since: None,
    follow: false,
    timestamps: false,
    own_output: false,
};

/// Waits until a log is read from the store, whole, and returns its text.
async fn stored(site: &Site, id: &SubmissionId, request: &LogRequest) -> String {
    read_stored(site, id, request, false).await
}

/// Waits until a log is read from the store, with lines missing or without.
async fn read_stored(site: &Site, id: &SubmissionId, request: &LogRequest, is_cut: bool) -> String {
    eventually(|| async {
        let log = site.service().logs.log(&site.service().anonymous(), id, request).await.unwrap();
        match log {
            Log::Stream(log) if log.source == LogSource::Store && log.cut == is_cut => Ok(text(log).await),
            _ => Err("it isn't stored"),
        }
    })
    .await
}

/// Waits until something in a folder has been written.
async fn until_written(dir: &Path) {
    eventually(|| async { (!files(dir).is_empty()).then_some(()).ok_or("nothing is stored") }).await;
}

/// Returns the names of all objects below a directory, but for the mark of its owner. One that is being written has a `#` in its name.
fn files(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.extend(
                entry
                    .file_name()
                    .into_string()
                    .ok()
                    .filter(|name| !name.contains('#') && !name.ends_with("-generation")),
            ),
        }
    }
    found
}

fn lines(from: u32, to: u32) -> String {
    (from..=to)
        .map(|n| format!("line {n}, as long as one of Spark mostly is, or so: 0123456789 0123456789\n"))
        .collect()
}

fn print(from: u32, to: u32) -> String {
    format!("seq -f 'line %.0f, as long as one of Spark mostly is, or so: 0123456789 0123456789' {from} {to}")
}

#[sqlx::test]
async fn an_executors_log_is_read_after_its_pod_is_gone(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs().await;
    let id = site.launch("exec sleep 300").await;
    site.execute(&id, &format!("echo one; sleep 1.1; printf 'two\\nthree\\n'; {WAIT}; echo four")).await;
    let mut following = site.open(&id, &LogRequest { follow: true, ..EXECUTOR }).await;
    assert_eq!(read_until(&mut following, "three\n").await, "one\ntwo\nthree\n");
    let (source, stamped) = site.read(&id, &LogRequest { timestamps: true, ..EXECUTOR }).await;
    assert_eq!(source, LogSource::Pod);
    site.go();
    // A driver deletes its executors at once.
    site.world.pods().delete("exec-7", &Default::default()).await.unwrap();
    let rest = text(following).await;
    assert!(["", "four\n"].contains(&rest.as_str()), "{rest}: the deletion may stop it before its last line");

    let whole = stored(&site, &id, &EXECUTOR).await;
    assert_eq!(whole, format!("one\ntwo\nthree\n{rest}"));
    assert_eq!(
        site.read(&id, &LogRequest { tail: Some(1), ..EXECUTOR }).await.1,
        whole.lines().last().unwrap().to_owned() + "\n"
    );
    let times: Vec<_> = stamped.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    let since = LogRequest { since: Some(times[1].parse().unwrap()), ..EXECUTOR };
    assert_eq!(site.read(&id, &since).await.1, whole.replace("one\n", ""));
    let (_, again) = site.read(&id, &LogRequest { timestamps: true, ..EXECUTOR }).await;
    assert!(again.starts_with(&stamped), "{again}");
    assert_eq!(site.read(&id, &LogRequest { follow: true, ..EXECUTOR }).await.1, whole);
}

/// Its node may have been lost: nothing shows that the stream ended with the container.
#[sqlx::test]
async fn the_log_of_a_pod_that_was_removed_before_its_end_is_not_whole(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs().await;
    let id = site.launch("exec sleep 300").await;
    site.execute(&id, "echo one; exec sleep 300").await;
    until_written(&site.store_dir()).await;
    let logs = &site.service().logs;
    let streams = |expected| {
        eventually(move || async move { (logs.streams() == expected).then_some(()).ok_or("other logs are read") })
    };
    streams((2, 0)).await;
    let at_once = kube::api::DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    site.world.pods().delete("exec-7", &at_once).await.unwrap();
    // The driver's is left.
    streams((1, 0)).await;
    let stored = files(&site.store_dir());
    assert!(!stored.iter().any(|name| name == "end"), "{stored:?}");
    assert_eq!(read_stored(&site, &id, &EXECUTOR, true).await, "one\n");
}

#[sqlx::test]
async fn a_drivers_whole_log_is_read_after_its_pod_is_gone(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs().await;
    let id = site.launch(&format!("{}; printf 'a\\0b'", print(1, 20_000))).await;
    site.until(&id, DriverState::Finished).await;
    let all = lines(1, 20_000) + "a\0b";
    assert!(all.len() > 4 * (256 << 10), "longer than what is archived");
    assert_eq!(stored(&site, &id, &LogRequest::default()).await, all);
    site.delete_pod().await;
    assert_eq!(stored(&site, &id, &LogRequest::default()).await, all);
    assert_eq!(site.read(&id, &tail(3)).await, (LogSource::Store, lines(19_999, 20_000) + "a\0b"));
    assert_eq!(site.read(&id, &tail(15_001)).await.1, lines(5_001, 20_000) + "a\0b");
    assert!(files(&site.store_dir()).len() > 4, "in parts");
    assert_eq!(site.read(&id, &follow()).await.1, all);
}

#[sqlx::test]
async fn another_gateway_continues_a_log_without_a_gap(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs().await;
    let id = site.launch(&format!("{}; {WAIT}; {}", print(1, 5000), print(5001, 10_000))).await;
    until_written(&site.store_dir()).await;
    let first = files(&site.store_dir());
    site.replace_gateway().await;
    site.go();
    site.until(&id, DriverState::Finished).await;
    assert_eq!(stored(&site, &id, &LogRequest::default()).await, lines(1, 10_000));
    site.delete_pod().await;
    assert_eq!(stored(&site, &id, &LogRequest::default()).await, lines(1, 10_000));
    let all = files(&site.store_dir());
    assert!(first.iter().all(|file| all.contains(file)), "it was continued");
}

#[sqlx::test]
async fn a_store_that_is_away_delays_no_driver_and_leaves_the_archive(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs().await;
    // A file where a directory has to be.
    fs::remove_dir_all(site.store_dir()).unwrap();
    fs::write(site.store_dir(), "").unwrap();
    let id = site.launch(&format!("{}; {WAIT}; echo end", print(1, 5000))).await;
    eventually(|| async { (sparkgate::metrics::metrics().log_store_errors.get() > 0).then_some(()).ok_or("it works") })
        .await;
    site.go();
    site.until(&id, DriverState::Finished).await;
    let (source, log) = site.read(&id, &LogRequest::default()).await;
    assert_eq!((source, log.lines().count()), (LogSource::Pod, 5001), "the pod is read as long as it exists");
    site.delete_pod().await;
    assert_eq!(site.read(&id, &tail(1)).await, (LogSource::Kept, "end\n".to_owned()));
}

#[sqlx::test]
async fn a_log_that_is_too_large_has_its_head_and_the_archived_end(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs_up_to(200 << 10).await;
    let id = site.launch(&print(1, 20_000)).await;
    site.until(&id, DriverState::Finished).await;
    let is_cut = |name: &String| name == "cut";
    eventually(|| async { files(&site.store_dir()).iter().any(is_cut).then_some(()).ok_or("it isn't stored") }).await;
    site.delete_pod().await;
    let log = read_stored(&site, &id, &LogRequest::default(), true).await;
    let note = "[sparkgate] the rest of this log is not stored: it is larger than 204800 bytes\n";
    let (head, end) = log.split_once(note).unwrap();
    assert!(lines(1, 20_000).starts_with(head.trim_end()) && head.len() > 100 << 10, "{}", head.len());
    assert!(lines(1, 20_000).ends_with(end) && end.len() > 100 << 10, "{}", end.len());
}

/// Spark's driver could be another tenant's: only the recorded pod of an attempt is stored as its log.
#[sqlx::test]
async fn the_log_of_a_pod_with_forged_labels_is_not_stored(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs().await;
    let id = site.launch("echo genuine; exec sleep 300").await;
    site.until(&id, DriverState::Running).await;
    let mut forged = site.world.driver().await;
    forged.metadata = kube::api::ObjectMeta {
        name: Some("forged".to_owned()),
        labels: forged.metadata.labels.clone(),
        annotations: forged.metadata.annotations.clone(),
        ..Default::default()
    };
    forged.status = None;
    let spec = forged.spec.as_mut().unwrap();
    *spec.containers[0].args.as_mut().unwrap().last_mut().unwrap() =
        "echo forged, and longer than the other one".to_owned();
    site.world.pods().create(&Default::default(), &forged).await.unwrap();
    eventually(|| async {
        let pod = site.world.pods().get("forged").await.unwrap();
        (pod.status.and_then(|status| status.phase).as_deref() == Some("Succeeded")).then_some(()).ok_or("it runs")
    })
    .await;
    site.service().submissions.kill(&site.service().anonymous(), &id).await.unwrap();
    site.service().launcher.work().await.unwrap();
    site.until(&id, DriverState::Killed).await;
    assert_eq!(stored(&site, &id, &LogRequest::default()).await, "genuine\n");
}

#[sqlx::test]
async fn logs_go_with_the_record_of_their_submission(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs().await;
    let (old, new) = (site.launch("echo old").await, site.launch("echo new").await);
    for id in [&old, &new] {
        site.until(id, DriverState::Finished).await;
        assert!(!stored(&site, id, &LogRequest::default()).await.is_empty());
    }
    // What is stored counts for the record: the lines with their times.
    let counted = "SELECT record_bytes - octet_length(objects) - octet_length(request::text)
                       - coalesce((SELECT octet_length(log) FROM kept_logs k WHERE k.submission_id = id), 0)
                   FROM submissions JOIN manifests m ON m.submission_id = id WHERE id = $1";
    let counted: i64 = sqlx::query_scalar(counted).bind(new.as_str()).fetch_one(&site.world.pool).await.unwrap();
    assert!(counted > 0, "{counted}");
    let logs = &site.service().logs;
    assert_eq!(logs.sweep(Utc::now() + TimeDelta::hours(25)).await.unwrap(), 0, "both have records");
    for table in ["submission_events", "submissions"] {
        let column = if table == "submissions" { "id" } else { "submission_id" };
        let statement = sqlx::AssertSqlSafe(format!("DELETE FROM {table} WHERE {column} = $1"));
        sqlx::query(statement).bind(old.as_str()).execute(&site.world.pool).await.unwrap();
    }
    assert_eq!(logs.sweep(Utc::now()).await.unwrap(), 0, "a database that is restored may lack it for a while");
    assert_eq!(logs.sweep(Utc::now() + TimeDelta::hours(25)).await.unwrap(), 1);
    assert_eq!(logs.sweep(Utc::now() + TimeDelta::hours(25)).await.unwrap(), 0);
    assert_eq!(stored(&site, &new, &LogRequest::default()).await, "new\n");
}

#[sqlx::test]
async fn what_a_collector_wrote_is_read_when_the_pod_is_gone(pool: PgPool) {
    let mut site = Site::new(pool).await;
    let dir = tempfile::tempdir().unwrap();
    let template = format!("{}/{{namespace}}/{{uid}}/{{container}}.log", dir.path().display());
    let collected = CollectedLogs::open(&template).unwrap();
    site.configure(|setup| setup.collected_logs = Some(collected)).await;
    let id = site.launch("echo from the pod").await;
    let pod = site.world.driver().await.metadata;
    site.until(&id, DriverState::Finished).await;
    assert_eq!(site.read(&id, &LogRequest::default()).await, (LogSource::Pod, "from the pod\n".to_owned()));
    site.delete_pod().await;
    assert_eq!(site.read(&id, &LogRequest::default()).await.0, LogSource::Kept, "it collected nothing");
    let folder = dir.path().join(pod.namespace.unwrap()).join(pod.uid.unwrap());
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("spark-kubernetes-driver.log"), "2026-01-01T00:00:00Z one\ntwo\n").unwrap();
    let collected = "2026-01-01T00:00:00Z one\ntwo\n".to_owned();
    assert_eq!(site.read(&id, &LogRequest::default()).await, (LogSource::Collector, collected));
    assert_eq!(site.read(&id, &tail(1)).await.1, "two\n");
}

#[sqlx::test]
async fn the_source_is_named_and_the_console_shows_an_executor_that_is_gone(pool: PgPool) {
    let mut site = Site::new(pool).await;
    site.store_logs().await;
    let id = site.launch("exec sleep 300").await;
    site.execute(&id, "echo from the executor").await;
    assert_eq!(stored(&site, &id, &EXECUTOR).await, "from the executor\n");
    site.world.pods().delete("exec-7", &Default::default()).await.unwrap();
    let response = super::http::get(&site, &format!("{id}/logs?executor=7")).await;
    assert_eq!(response.headers()["sparkgate-log-source"], "store");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "from the executor\n");
    let page = super::http::get_path(&site, &format!("/console/submissions/{id}/logs?executor=7")).await;
    let page = page.into_body().collect().await.unwrap().to_bytes();
    let page = std::str::from_utf8(&page).unwrap();
    assert!(page.contains("from the executor") && page.contains("The log is stored"), "{page}");
}
