//! Whose submissions are claimed: tenants take turns, and the namespaces of each.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use sparkgate::store::{Claimed, DatabaseSettings, Room, Store, replica};
use sqlx::{
    ConnectOptions, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use uuid::Uuid;

use crate::support::{publish_statistics, rows_read, rows_read_until_the_end, session};

/// Queues submissions in each of these namespaces of a tenant, one namespace after the other.
async fn queue(pool: &PgPool, tenant: &str, namespaces: &[&str], each: i64) {
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at, tenant)
         SELECT 'driver-20260101000000-' || lpad(n::text, 6, '0'), n, 'QUEUED', '{}', '4.3.0', 'tester', namespace, '{}', now(), $1
         FROM (SELECT namespace, (SELECT count(*) FROM submissions) + row_number() OVER (ORDER BY nth, i) AS n
               FROM unnest($2::text[]) WITH ORDINALITY AS named (namespace, nth), generate_series(1, $3) AS i) AS new",
    )
    .bind(tenant)
    .bind(namespaces)
    .bind(each)
    .execute(pool)
    .await
    .unwrap();
}

fn by_namespace(claimed: &[Claimed]) -> BTreeMap<&str, usize> {
    claimed.iter().fold(BTreeMap::new(), |mut counts, one| {
        *counts.entry(one.namespace.as_str()).or_default() += 1;
        counts
    })
}

/// A backlog of one tenant, in several namespaces, is older than the first submission of another tenant.
#[sqlx::test]
async fn the_first_submission_of_a_tenant_is_claimed_however_long_the_queues_of_others_are(pool: PgPool) {
    queue(&pool, "red", &["a", "b", "c"], 1000).await;
    queue(&pool, "blue", &["d"], 1).await;
    let store = Store::new(pool.clone());
    let claimed = store.claim(session(&store).await, 16, &[], &[]).await.unwrap();
    assert_eq!(by_namespace(&claimed), [("a", 5), ("b", 5), ("c", 5), ("d", 1)].into());
    assert_eq!(claimed.iter().find(|one| one.namespace == "d").unwrap().tenant, "blue");
    assert_eq!(claimed[0].number, 1, "of a namespace, the oldest is the first");
}

/// An installation without an access file has one tenant.
#[sqlx::test]
async fn the_first_submission_of_a_namespace_is_claimed_however_long_the_queues_of_others_are(pool: PgPool) {
    queue(&pool, "default", &["a", "b", "c"], 1000).await;
    queue(&pool, "default", &["d"], 1).await;
    let store = Store::new(pool.clone());
    let claimed = store.claim(session(&store).await, 16, &[], &[]).await.unwrap();
    assert_eq!(by_namespace(&claimed)["d"], 1);
}

#[sqlx::test]
async fn a_tenant_with_many_namespaces_gets_no_more_than_one_with_few(pool: PgPool) {
    queue(&pool, "red", &["a", "b", "c", "d", "e", "f"], 100).await;
    queue(&pool, "blue", &["g"], 100).await;
    queue(&pool, "green", &["h", "i"], 1).await;
    let store = Store::new(pool.clone());
    let claimed = store.claim(session(&store).await, 26, &[], &[]).await.unwrap();
    let counts = by_namespace(&claimed);
    // What the third one doesn't need is divided among the others, nearly evenly.
    assert!((11..=12).contains(&counts["g"]), "{counts:?}");
    assert_eq!((counts["h"], counts["i"]), (1, 1));
    assert!(["a", "b", "c", "d", "e", "f"].iter().all(|name| (2..=3).contains(&counts[name])), "{counts:?}");
}

/// With one place at a time, too.
#[sqlx::test]
async fn turns_are_taken_across_claims(pool: PgPool) {
    queue(&pool, "red", &["a"], 1000).await;
    queue(&pool, "blue", &["b"], 1).await;
    let store = Store::new(pool.clone());
    let session = session(&store).await;
    let mut claims = 0;
    while store.claim(session, 1, &[], &[]).await.unwrap()[0].namespace != "b" {
        claims += 1;
        assert!(claims < 200, "b isn't claimed");
    }
}

#[sqlx::test]
async fn a_claim_leaves_slots_to_others(pool: PgPool) {
    queue(&pool, "red", &["a", "b", "c"], 300).await;
    queue(&pool, "green", &["d", "e"], 300).await;
    let store = Store::new(pool.clone());
    let session = session(&store).await;
    let claim = async |room: Room| store.claim_within(session, &room, &[], &[]).await.unwrap();
    let room = |free| Room { all: free, free, ..Room::default() };
    let both = by_namespace(&claim(room(192)).await).values().sum::<usize>();
    assert!((100..=154).contains(&both), "{both} of 192");
    let held = |names: &[(&str, i64)]| names.iter().map(|(name, held)| ((*name).to_owned(), *held)).collect();
    // Nothing of them ends.
    let full = Room {
        held: held(&[("a", 26), ("b", 26), ("c", 25), ("d", 39), ("e", 38)]),
        held_by_tenant: held(&[("red", 77), ("green", 77)]),
        ..room(38)
    };
    assert!(claim(full.clone()).await.is_empty());
    queue(&pool, "blue", &["f"], 1).await;
    assert_eq!(by_namespace(&claim(full).await), [("f", 1)].into());
}

/// Claims at the same moment take different submissions.
#[sqlx::test]
async fn concurrent_claims_take_different_submissions(pool: PgPool) {
    queue(&pool, "red", &["a", "b"], 50).await;
    let store = Store::new(pool.clone());
    let (one, other) = (session(&store).await, session(&store).await);
    #[expect(clippy::disallowed_methods, reason = "no caller drops the future")]
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM submissions WHERE number <= 10 FOR UPDATE").execute(&mut *lock).await.unwrap();
    let claimed = store.claim(one, 10, &[], &[]).await.unwrap();
    assert_eq!(claimed.len(), 10, "locked rows are passed over");
    lock.rollback().await.unwrap();
    let then = store.claim(other, 100, &[], &[]).await.unwrap();
    assert_eq!(then.len(), 90);
    assert!(then.iter().all(|one| claimed.iter().all(|other| other.id != one.id)));
}

/// A claim reads about as many rows as it claims, and one of each namespace, however many wait.
#[sqlx::test]
async fn a_claim_reads_few_of_a_hundred_thousand_in_two_hundred_namespaces(
    options: PgPoolOptions,
    its: PgConnectOptions,
) {
    // One connection, whose statistics are published before they are read.
    let pool = options.max_connections(1).connect_with(its).await.unwrap();
    sqlx::query("ALTER TABLE submissions SET (autovacuum_enabled = off)").execute(&pool).await.unwrap();
    let url = pool.connect_options().to_url_lossy().to_string();
    let store = Store::connect(&DatabaseSettings { url, max_connections: 3 }).await.unwrap();
    let session = Uuid::new_v4();
    assert!(store.acquire_lease(&replica(session), session, Duration::from_secs(25)).await.unwrap());
    let names: Vec<_> = (0..200).map(|number| format!("team-{number:03}")).collect();
    let all: Vec<_> = names.iter().map(String::as_str).collect();
    for (tenant, some) in all.chunks(50).enumerate() {
        queue(&pool, &format!("tenant-{tenant}"), some, 500).await;
    }
    publish_statistics(&pool).await;
    let before = rows_read(&pool).await;
    let mut times = Vec::new();
    for _ in 0..10 {
        // It may have expired meanwhile on a machine that is busy.
        assert!(store.acquire_lease(&replica(session), session, Duration::from_secs(25)).await.unwrap());
        let begun = Instant::now();
        let claimed = store.claim(session, 16, &[], &[]).await.unwrap();
        times.push(begun.elapsed());
        assert_eq!(claimed.len(), 16);
        for one in &claimed {
            store.release(one).await.unwrap();
        }
    }
    println!("{times:?}");
    let read = rows_read_until_the_end(store, &pool, before).await;
    assert!(read < 10 * 1000, "{read} rows were read by ten claims");
}
