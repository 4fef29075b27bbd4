//! What a tenant may use of the database, under concurrent requests.

use std::time::Duration;

use futures::future::join_all;
use sparkgate::{
    store::{
        Accepted, Actor, AddedFile, AddedPart, AuditNote, FilePart, FileRecord, FileUpload, LogEnd, NewFile,
        NewSubmission, NewWebhook, Options, ReachedBound, Sealed, Store, StoredSecrets, TenantBounds, WebhookFilter,
    },
    submission::SubmissionId,
};
use sqlx::PgPool;

use crate::support::{connect, draw, new};

fn actor() -> Actor {
    let (principal, request_id) = ("corp:alice".to_owned(), "request".to_owned());
    Actor { principal, address: None, request_id, note: AuditNote::default() }
}

async fn bounded(store: &Store, tenant: &str, bounds: TenantBounds) -> NewSubmission {
    NewSubmission { tenant: tenant.to_owned(), bounds, ..new(draw(store).await, "pod-1") }
}

async fn accept(store: &Store, new: NewSubmission) -> Accepted {
    loop {
        // This machine may be busy.
        match store.accept(new.clone()).await {
            Ok(accepted) => return accepted,
            Err(error) => assert!(error.is_contention() || error.to_string().contains("available"), "{error}"),
        }
    }
}

async fn record_bytes(pool: &PgPool, tenant: &str) -> i64 {
    let sum = "SELECT coalesce(sum(bytes), 0)::bigint FROM record_bytes WHERE tenant = $1";
    sqlx::query_scalar(sum).bind(tenant).fetch_one(pool).await.unwrap()
}

async fn count(pool: &PgPool, table: &str, tenant: &str) -> i64 {
    let count = format!("SELECT count(*) FROM {table} WHERE tenant = $1");
    sqlx::query_scalar(sqlx::AssertSqlSafe(count)).bind(tenant).fetch_one(pool).await.unwrap()
}

#[sqlx::test]
async fn concurrent_submissions_exceed_no_bound(pool: PgPool) {
    // Several replicas, in groups and alone, with the audit and with encrypted objects.
    let replicas = [connect(&pool).await, connect(&pool).await];
    let bounds = TenantBounds { queued: Some(7), record_bytes: None };
    let tries = (0..40).map(|n| {
        let store = &replicas[n % 2];
        async move {
            let mut new = bounded(store, "red", bounds).await;
            new.options.client_id = (n % 4 == 0).then(|| n.to_string());
            new.actor = (n % 3 == 0).then(actor);
            new.sealed = (n % 5 == 0).then(|| Sealed { key: "k".to_owned(), text: vec![1] });
            let other = NewSubmission { bounds: TenantBounds::default(), ..bounded(store, "blue", bounds).await };
            (accept(store, new).await, accept(store, other).await)
        }
    });
    let (red, blue): (Vec<_>, Vec<_>) = join_all(tries).await.into_iter().unzip();
    assert_eq!(red.iter().filter(|accepted| matches!(accepted, Accepted::New(_))).count(), 7);
    let full = |accepted: &&Accepted| matches!(accepted, Accepted::Full(ReachedBound::Queued { most: 7 }));
    assert_eq!(red.iter().filter(full).count(), 33);
    assert!(blue.iter().all(|accepted| matches!(accepted, Accepted::New(_))), "others aren't limited");
    assert_eq!((count(&pool, "submissions", "red").await, count(&pool, "submissions", "blue").await), (7, 40));

    // One that is launched makes room for one.
    sqlx::query(
        "UPDATE submissions SET state = 'RUNNING' WHERE id = (SELECT id FROM submissions WHERE tenant = 'red' LIMIT 1)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let store = &replicas[0];
    assert_eq!(store.reached_bound("red", &bounds).await.unwrap(), None);
    assert!(matches!(accept(store, bounded(store, "red", bounds).await).await, Accepted::New(_)));
    assert!(matches!(accept(store, bounded(store, "red", bounds).await).await, Accepted::Full(_)));
    let reached = store.reached_bound("red", &bounds).await.unwrap();
    assert_eq!(reached, Some(ReachedBound::Queued { most: 7 }));
}

#[sqlx::test]
async fn the_records_of_a_tenant_are_bounded_until_they_are_deleted(pool: PgPool) {
    let store = connect(&pool).await;
    let of = |manifest: &str, bytes: u64| {
        let (store, manifest) = (store.clone(), manifest.to_owned());
        async move {
            let bounds = TenantBounds { queued: None, record_bytes: Some(bytes) };
            let new = NewSubmission { manifest, ..bounded(&store, "red", bounds).await };
            (new.drawn.id.clone(), accept(&store, new).await)
        }
    };
    let large = format!(r#"{{"pod":"{}"}}"#, "x".repeat(10_000));
    let (first, accepted) = of(&large, 1 << 30).await;
    assert!(matches!(accepted, Accepted::New(_)));
    let each = record_bytes(&pool, "red").await;
    assert!((10_000..20_000).contains(&each), "{each}");
    let each = each.unsigned_abs();

    // Five more of the same size at once, where three have room.
    let most = 4 * each + each / 2;
    let accepted = join_all((0..5).map(|_| of(&large, most))).await;
    assert_eq!(accepted.iter().filter(|(_, accepted)| matches!(accepted, Accepted::New(_))).count(), 3);
    let (_, accepted) = of(&large, most).await;
    assert!(matches!(accepted, Accepted::Full(ReachedBound::RecordBytes { bytes, .. }) if bytes == 4 * each));
    let bounds = TenantBounds { queued: None, record_bytes: Some(4 * each) };
    let reached = ReachedBound::RecordBytes { bytes: 4 * each, most: 4 * each };
    assert_eq!(store.reached_bound("red", &bounds).await.unwrap(), Some(reached));
    assert!(matches!(of(r#"{"pod":1}"#, most).await.1, Accepted::New(_)), "a small one has room");

    // Logs count, and what is counted is added up.
    let before = record_bytes(&pool, "red").await;
    store.add_record_bytes(&first, 500).await.unwrap();
    let log = LogEnd { text: (0..40_000_u32).flat_map(u32::to_le_bytes).collect(), cut: false };
    store.keep_log(&first, 1, Some(log.clone()), &[]).await.unwrap();
    store.keep_log(&first, 1, Some(log), &[]).await.unwrap();
    let kept: i64 = sqlx::query_scalar("SELECT sum(octet_length(log)) FROM kept_logs").fetch_one(&pool).await.unwrap();
    assert!(kept > 0);
    assert_eq!(record_bytes(&pool, "red").await, before + 500 + kept);
    sqlx::query("INSERT INTO record_bytes SELECT 'red', 0 FROM generate_series(1, 200)").execute(&pool).await.unwrap();
    store.add_up_record_bytes(1000).await.unwrap();
    assert_eq!(count(&pool, "record_bytes", "red").await, 1);
    assert_eq!(record_bytes(&pool, "red").await, before + 500 + kept);

    // A deleted record makes room.
    let end = "UPDATE submissions SET state = 'FINISHED', finished_at = now() - interval '1 day', settled = true WHERE id = $1";
    sqlx::query(end).bind(first.as_str()).execute(&pool).await.unwrap();
    assert_eq!(store.delete_ended(Duration::from_secs(3600), 10, None).await.unwrap(), 1);
    let left = record_bytes(&pool, "red").await;
    assert_eq!(left, before - i64::try_from(each).unwrap());
}

/// The release before writes rows without these bytes.
#[sqlx::test]
async fn records_of_an_earlier_release_count_as_nothing(pool: PgPool) {
    let store = Store::new(pool.clone());
    let new = bounded(&store, "red", TenantBounds::default()).await;
    let id: SubmissionId = new.drawn.id.clone();
    store.accept(NewSubmission { options: Options::default(), ..new }).await.unwrap();
    sqlx::raw_sql("UPDATE submissions SET record_bytes = NULL; DELETE FROM record_bytes").execute(&pool).await.unwrap();
    sqlx::query("DELETE FROM submissions WHERE id = $1").bind(id.as_str()).execute(&pool).await.unwrap();
    assert_eq!(count(&pool, "record_bytes", "red").await, 0);
}

#[sqlx::test]
async fn concurrent_webhooks_of_a_tenant_do_not_exceed_their_number(pool: PgPool) {
    let stores = [connect(&pool).await, connect(&pool).await];
    let create = |n: usize| {
        let store = stores[n % 2].clone();
        async move {
            let new = NewWebhook {
                id: format!("wh_{n}"),
                tenant: "red".to_owned(),
                principal: "corp:alice".to_owned(),
                url: "https://hooks.example.org/".to_owned(),
                format: "sparkgate",
                own: false,
                submission_id: None,
                filter: WebhookFilter::default(),
                secrets: StoredSecrets { secrets: Vec::new(), secrets_key: None },
                expires_in: None,
            };
            loop {
                if let Ok(created) = store.create_webhook(&new, 5, None).await {
                    return created.is_some();
                }
            }
        }
    };
    let created = join_all((0..30).map(create)).await;
    assert_eq!(created.into_iter().filter(|created| *created).count(), 5);
    assert_eq!(count(&pool, "webhooks", "red").await, 5);
}

#[sqlx::test]
async fn concurrent_uploads_of_a_tenant_do_not_exceed_its_quota(pool: PgPool) {
    let store = Store::new(pool.clone());
    let upload = |n: usize| {
        let store = store.clone();
        async move {
            let object = format!("object-{n}");
            let sha256 = format!("{n:02}");
            if n.is_multiple_of(2) {
                let record = FileRecord { sha256, size: 10, object };
                let new = NewFile { tenant: "red".to_owned(), principal: "corp:alice".to_owned(), record };
                return store.add_file(&new, Some(75), None).await.unwrap() == AddedFile::Added;
            }
            let upload = FileUpload { tenant: "red", sha256: &sha256, principal: "corp:alice" };
            let part = FilePart { object, size: 10 };
            matches!(store.add_file_part(upload, 0, &part, Some(75)).await.unwrap(), AddedPart::Added(_))
        }
    };
    let added = join_all((0..30).map(upload)).await;
    assert_eq!(added.into_iter().filter(|added| *added).count(), 7);
    assert_eq!(store.file_bytes("red").await.unwrap(), 70);
}
