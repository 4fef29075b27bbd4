//! Logs of drivers: from their pods, then from the archive. Pods are processes of a sandbox node, behind its API
//! server.

mod http;
mod site;
mod stored;

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use kube::{Client, client::Body};
use serde_json::json;
use sparkgate::{
    service::{LogRequest, LogSource, NoLog, Witness},
    submission::DriverState,
};
use sparkgate_testing::database::refuse_twice;
use sqlx::{Connection, PgPool};

use self::site::{Site, follow, read_until, tail, text};
use crate::world::{World, eventually};

const WAIT: &str = "until [ -e $GO ]; do sleep 0.05; done";

#[sqlx::test]
async fn a_log_is_read_from_the_pod_and_later_from_the_archive(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch(&format!("echo one; sleep 1.1; printf 'two\\nthree\\n'; {WAIT}; echo four; exit 3")).await;
    let mut following = site.open(&id, &follow()).await;
    assert_eq!(read_until(&mut following, "three\n").await, "one\ntwo\nthree\n");
    assert_eq!(site.read(&id, &tail(2)).await, (LogSource::Pod, "two\nthree\n".to_owned()));
    let (_, stamped) = site.read(&id, &LogRequest { timestamps: true, ..LogRequest::default() }).await;
    let times: Vec<_> = stamped.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert_eq!(times.iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["one", "two", "three"]);
    let since = LogRequest { since: Some(times[1].0.parse().unwrap()), ..LogRequest::default() };
    assert_eq!(site.read(&id, &since).await.1, "two\nthree\n");

    site.go();
    assert_eq!(text(following).await, "four\n", "the end of the driver is the end of the log");
    site.until(&id, DriverState::Failed).await;
    assert_eq!(site.read(&id, &follow()).await, (LogSource::Pod, "one\ntwo\nthree\nfour\n".to_owned()));
    site.delete_pod().await;
    assert_eq!(site.read(&id, &follow()).await, (LogSource::Kept, "one\ntwo\nthree\nfour\n".to_owned()));
    assert_eq!(site.read(&id, &tail(1)).await.1, "four\n");
    assert_eq!(site.read(&id, &since).await.1, "two\nthree\nfour\n");
    let (_, again) = site.read(&id, &LogRequest { timestamps: true, ..LogRequest::default() }).await;
    assert!(again.starts_with(&stamped) && again.ends_with(" four\n"), "{again}");
    assert_eq!(site.service().logs.archived(&id, 1).await.unwrap().tail.as_deref(), Some("one\ntwo\nthree\nfour\n"));
}

#[sqlx::test]
async fn a_failure_is_recorded_with_its_cause(pool: PgPool) {
    let site = Site::new(pool).await;
    let traceback =
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: no such column: x\n";
    let id = site.launch(&format!("{WAIT}; echo -n '{traceback}'; exit 1")).await;
    site.go();
    let row = loop {
        let row = site.service().submissions.submission(&site.service().anonymous(), &id).await.unwrap().unwrap();
        if row.state.is_terminal() {
            break row;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let why = site.service().submissions.failure_reason(&row).await.unwrap().unwrap();
    let message = "the driver exited with code 1 (Error): ValueError: no such column: x";
    assert_eq!((why.message.as_str(), why.log_tail.as_deref()), (message, Some(traceback)), "at the first answer");
    let of_event = "SELECT message FROM submission_events WHERE state = 'FAILED'";
    assert_eq!(sqlx::query_scalar::<_, String>(of_event).fetch_one(&site.world.pool).await.unwrap(), message);
    assert_eq!(site.world.events(&id).await.iter().filter(|state| *state == "FAILED").count(), 1);
}

#[sqlx::test]
async fn a_write_that_fails_a_few_times_loses_no_log(pool: PgPool) {
    let site = Site::new(pool).await;
    refuse_twice(&site.world.pool, "BEFORE INSERT ON kept_logs FOR EACH ROW", "53000").await;
    let id = site.launch("echo done").await;
    site.until(&id, DriverState::Finished).await;
    eventually(|| async { site.service().logs.archived(&id, 1).await.unwrap().tail.ok_or("nothing is kept") }).await;
    site.delete_pod().await;
    assert_eq!(site.read(&id, &LogRequest::default()).await, (LogSource::Kept, "done\n".to_owned()));
}

#[sqlx::test]
async fn a_cause_is_recorded_although_its_log_can_not_be_stored(pool: PgPool) {
    let site = Site::new(pool).await;
    let refused = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER refused BEFORE INSERT ON kept_logs FOR EACH ROW EXECUTE FUNCTION refuse()";
    sqlx::raw_sql(refused).execute(&site.world.pool).await.unwrap();
    let id = site.launch("echo 'ValueError: no such column: x'; exit 1").await;
    site.until(&id, DriverState::Failed).await;
    let of_event = "SELECT message FROM submission_events WHERE state = 'FAILED'";
    let message: String = sqlx::query_scalar(of_event).fetch_one(&site.world.pool).await.unwrap();
    assert!(message.contains("no such column"), "{message}");
}

/// Failures that were recorded without their cause, such as those of earlier releases.
#[sqlx::test]
async fn a_cause_that_is_only_in_the_archive_is_reported(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("echo 'Exception in thread \"main\" a.B: c'; exit 1").await;
    site.until(&id, DriverState::Failed).await;
    sqlx::query("UPDATE submissions SET message = 'it failed'").execute(&site.world.pool).await.unwrap();
    let row = site.service().submissions.submission(&site.service().anonymous(), &id).await.unwrap().unwrap();
    assert_eq!(site.service().submissions.failure_reason(&row).await.unwrap().unwrap().message, "it failed: a.B: c");
}

#[sqlx::test]
async fn the_end_of_a_long_log_with_arbitrary_bytes_is_archived(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("seq -f 'line %.0f, as long as one of Spark mostly is, or so: 0123456789 0123456789' 100000; printf 'a\\0b\\xff\\n'").await;
    site.until(&id, DriverState::Finished).await;
    site.delete_pod().await;
    let stream = site.open(&id, &LogRequest::default()).await;
    assert!(stream.cut);
    let log: Vec<_> = stream.bytes.map(|piece| piece.unwrap()).collect().await;
    let log = log.concat();
    assert!(log.ends_with(b"\na\0b\xff\n"));
    let first = log.split(|byte| *byte == b'\n').next().unwrap();
    let first: u64 = String::from_utf8_lossy(first).split([' ', ',']).nth(1).unwrap().parse().unwrap();
    let (kept, packed): (i32, i32) =
        sqlx::query_as("SELECT size_bytes, length(log) FROM kept_logs WHERE submission_id = $1")
            .bind(id.as_str())
            .fetch_one(&site.world.pool)
            .await
            .unwrap();
    assert!(kept <= 256 << 10 && kept > 255 << 10, "{kept}");
    assert!(packed < kept / 4, "{packed} of {kept}");
    let count = log.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert_eq!(first + count - 2, 100_000, "from the beginning of a line to the end of the log");
}

#[sqlx::test]
async fn a_follower_gets_every_line_once_although_connections_break(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch(&format!("for n in {{1..40}}; do echo $n; sleep 0.05; done; {WAIT}; echo end")).await;
    let mut following = site.open(&id, &follow()).await;
    let mut all = String::new();
    for until in ["10\n", "20\n", "30\n", "40\n"] {
        if !all.contains(until) {
            all.push_str(&read_until(&mut following, until).await);
        }
        site.proxy.cut();
    }
    site.go();
    all.push_str(&text(following).await);
    let lines: Vec<String> = (1..=40).map(|n| n.to_string()).chain(["end".to_owned()]).collect();
    assert_eq!(all.lines().collect::<Vec<_>>(), lines);
    assert!(site.proxy.connections() > 4);
}

/// As many readers as one namespace may have. They follow a log and stop reading it.
#[sqlx::test]
async fn readers_that_stop_reading_delay_neither_their_driver_nor_the_archive(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch(&format!("echo one; {WAIT}; echo two")).await;
    let mut readers = Vec::new();
    for _ in 0..200 {
        let mut reader = site.open(&id, &follow()).await;
        read_until(&mut reader, "one\n").await;
        readers.push(reader);
    }
    assert_eq!(site.no_log(&id, &follow()).await, NoLog::Busy);
    site.go();
    site.until(&id, DriverState::Finished).await;
    site.delete_pod().await;
    readers.pop();
    assert_eq!(site.read(&id, &follow()).await, (LogSource::Kept, "one\ntwo\n".to_owned()));
}

/// A server that has nothing to write doesn't poll the body of its answer.
#[sqlx::test]
async fn readers_that_stop_in_the_middle_of_a_query_keep_no_connection(pool: PgPool) {
    let site = Site::new(pool.clone()).await;
    let id = site.launch("exec sleep 300").await;
    let mut readers = Vec::new();
    for _ in 0..16 {
        readers.push(site.open(&id, &follow()).await);
    }
    let mut other = sqlx::PgConnection::connect_with(&pool.connect_options()).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK submissions").execute(&mut other).await.unwrap();
    for reader in &mut readers {
        assert!(reader.bytes.next().now_or_never().is_none());
    }
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut other).await.unwrap() == 0 {
        sqlx::raw_sql("SELECT pg_sleep(0.05)").execute(&mut other).await.unwrap();
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert!(site.service().submissions.status(&site.service().anonymous(), &id).await.unwrap().is_some());
}

#[sqlx::test]
async fn a_reader_that_comes_before_the_driver_waits_for_it(pool: PgPool) {
    let site = Site::new(pool).await;
    let mut request = site.world.request(&[]);
    request.app_args = vec!["echo hello".to_owned()];
    let id = site.service().submissions.create(&site.service().anonymous(), request).await.unwrap();
    assert!(matches!(site.no_log(&id, &LogRequest::default()).await, NoLog::NotStarted(_)));
    let following = site.open(&id, &follow()).await;
    let reading = tokio::spawn(text(following));
    site.service().launcher.work().await.unwrap();
    assert_eq!(reading.await.unwrap(), "hello\n");
}

#[sqlx::test]
async fn a_shutdown_ends_log_streams_with_a_retryable_error(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("echo one; exec sleep 300").await;
    let mut following = site.open(&id, &follow()).await;
    read_until(&mut following, "one\n").await;
    site.service().health.drain();
    let last = tokio::time::timeout(Duration::from_secs(30), following.bytes.next()).await.unwrap();
    assert!(last.unwrap().unwrap_err().may_pass());
    assert!(following.bytes.next().await.is_none());
}

#[sqlx::test]
async fn missing_submissions_and_missing_logs_are_distinguished(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("true").await;
    let unknown = "driver-20200101000000-9999".parse().unwrap();
    assert_eq!(site.no_log(&unknown, &LogRequest::default()).await, NoLog::Submission);
    let attempt = LogRequest { attempt: Some(2), ..LogRequest::default() };
    assert_eq!(site.no_log(&id, &attempt).await, NoLog::Attempt);
    let executor = LogRequest { executor: Some(1), ..LogRequest::default() };
    assert_eq!(site.no_log(&id, &executor).await, NoLog::Executor);
    site.until(&id, DriverState::Finished).await;
    site.delete_pod().await;
    assert_eq!(site.no_log(&id, &LogRequest::default()).await, NoLog::Gone, "it wrote nothing");
}

#[sqlx::test]
async fn the_events_of_a_driver_that_never_started_are_archived(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    let pod = world.driver().await;
    let event = |name: &str, kind: &str, reason: &str, count: i32| {
        json!({"metadata": {"name": name}, "type": kind, "reason": reason, "message": format!("{reason} it is"),
            "count": count, "lastTimestamp": "2026-01-01T00:00:00Z", "involvedObject": {"kind": "Pod",
            "namespace": world.namespace, "name": pod.metadata.name, "uid": pod.metadata.uid}})
    };
    let mut other = event("other", "Warning", "Other", 1);
    other["involvedObject"]["uid"] = json!("another-pod");
    for event in [event("a", "Normal", "Pulling", 1), event("b", "Warning", "FailedScheduling", 4), other] {
        let event = serde_json::from_value(event).unwrap();
        world.api::<k8s_openapi::api::core::v1::Event>().create(&Default::default(), &event).await.unwrap();
    }
    let row = world.service.submissions.submission(&world.service.anonymous(), &id).await.unwrap().unwrap();
    let now = world.service.logs.pod_events(&id, &row.namespace, &row.pod_uid.unwrap()).await;
    let reasons: Vec<_> = now.iter().map(|event| (event.reason.as_str(), event.count)).collect();
    assert_eq!(reasons, [("FailedScheduling", 4), ("Pulling", 1)]);

    world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap();
    world.service.launcher.work().await.unwrap();
    world.until(&id, DriverState::Killed).await;
    let kept = eventually(|| async {
        let kept = world.service.logs.archived(&id, 1).await.unwrap().events;
        if kept.is_empty() { Err("nothing is kept") } else { Ok(kept) }
    })
    .await;
    assert_eq!(kept, now);
}

/// Spark defines the pods of executors; this test creates them by hand.
#[sqlx::test]
async fn an_executors_log_is_deleted_with_its_pod(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("exec sleep 300").await;
    site.execute(&id, "echo from the executor").await;
    let of_executor = LogRequest { executor: Some(7), ..follow() };
    assert_eq!(site.read(&id, &of_executor).await, (LogSource::Pod, "from the executor\n".to_owned()));
    site.world.pods().delete("exec-7", &Default::default()).await.unwrap();
    eventually(|| async {
        match site
            .service()
            .logs
            .log(&site.service().anonymous(), &id, &LogRequest { executor: Some(7), ..LogRequest::default() })
            .await
            .unwrap()
        {
            sparkgate::service::Log::None(NoLog::ExecutorGone) => Ok(()),
            _ => Err("still there"),
        }
    })
    .await;
}

/// Returns a client whose requests for logs are never answered.
fn without_nodes(client: &Client) -> Client {
    let real = client.clone();
    let service = tower::service_fn(move |request: ::http::Request<Body>| {
        let real = real.clone();
        async move {
            if request.uri().path().ends_with("/log") {
                std::future::pending::<()>().await;
            }
            real.send(request).await
        }
    });
    Client::new(service, "default")
}

#[sqlx::test]
async fn an_unreachable_node_does_not_delay_the_finalizer(pool: PgPool) {
    let good = World::new(pool.clone()).await;
    let mut world = World::on(pool, without_nodes(&good.client), good.namespace.clone()).await;
    let id = world.submit_running().await;
    world.play_exit(3).await;
    world.until(&id, DriverState::Failed).await;
    world.remove_driver().await;
    good.until_no_driver().await;
}

#[sqlx::test]
async fn the_log_of_a_pod_without_a_finalizer_is_archived(pool: PgPool) {
    let mut site = Site::new(pool).await;
    let World { pool, client, admin, namespace, .. } = &site.world;
    let mut world = World::unheld(pool.clone(), client.clone(), namespace.clone()).await;
    world.admin = admin.clone();
    world.watch();
    site.world = world;
    let id = site.launch("echo bye; exit 1").await;
    site.until(&id, DriverState::Failed).await;
    eventually(|| async { site.service().logs.archived(&id, 1).await.unwrap().tail.ok_or("nothing is kept") }).await;
    site.delete_pod().await;
    assert_eq!(site.read(&id, &LogRequest::default()).await, (LogSource::Kept, "bye\n".to_owned()));
}
