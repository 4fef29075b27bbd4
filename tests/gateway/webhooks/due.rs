//! When deliveries are due, and whose turn it is.

use std::time::{Duration, Instant};

use serde_json::json;
use sparkgate::store::{DatabaseSettings, Settled, Store, TriedDelivery};
use sparkgate_testing::{
    receiver::{Answer, Receiver},
    wait::until,
};
use sqlx::{ConnectOptions, PgPool};

use crate::webhooks::world::Replica;

/// Numbers all events and queues them.
async fn queue(replica: &Replica, store: &Store) {
    while replica.service.events.publish().await.unwrap().more {}
    store.queue_deliveries(100).await.unwrap();
}

async fn due(store: &Store, served: &[String]) -> usize {
    store.due_webhooks(10, served).await.unwrap().len()
}

#[sqlx::test]
async fn a_change_behind_one_that_waits_is_not_due(pool: PgPool) {
    // Its loops don't run.
    let replica = Replica::new(&pool).await;
    let store = Store::new(pool.clone());
    let webhook = replica.create(json!({"url": "https://hooks.example.org/"})).await;
    let id = webhook["id"].as_str().unwrap().to_owned();
    assert_eq!((store.next_turn().await.unwrap(), due(&store, &[]).await), (None, 0));
    let submission = replica.submit(json!({})).await;
    queue(&replica, &store).await;
    assert_eq!(due(&store, &[]).await, 1);
    assert_eq!(due(&store, std::slice::from_ref(&id)).await, 0, "it is being served");

    sqlx::query("UPDATE webhook_deliveries SET next_try_at = now() + interval '1 hour'").execute(&pool).await.unwrap();
    store.begin_turn(&id).await.unwrap();
    store.end_turn(&id, true).await.unwrap();
    let in_an_hour = Duration::from_secs(3000)..=Duration::from_secs(3600);
    assert!(in_an_hour.contains(&store.next_turn().await.unwrap().unwrap()));
    replica.advance(&submission, "LAUNCHING").await;
    queue(&replica, &store).await;
    let times = "SELECT count(*), count(DISTINCT next_try_at) FROM webhook_deliveries";
    let (deliveries, times): (i64, i64) = sqlx::query_as(times).fetch_one(&pool).await.unwrap();
    assert_eq!((deliveries, times), (2, 1), "the second change is due with the first");
    // Also if its time has come, as that of one that was queued while the first one failed.
    let second = "UPDATE webhook_deliveries SET next_try_at = now() WHERE event ->> 'state' = 'LAUNCHING'";
    sqlx::query(second).execute(&pool).await.unwrap();
    store.begin_turn(&id).await.unwrap();
    store.end_turn(&id, false).await.unwrap();
    assert_eq!(due(&store, &[]).await, 0);
    assert!(in_an_hour.contains(&store.next_turn().await.unwrap().unwrap()));
}

/// A replica that dies, or a release that knows no turns.
#[sqlx::test]
async fn a_webhook_with_pending_deliveries_and_without_a_turn_gets_one(pool: PgPool) {
    let replica = Replica::new(&pool).await;
    let store = Store::new(pool.clone());
    for number in 0..3 {
        replica.create(json!({"url": format!("https://hooks.example.org/{number}")})).await;
    }
    replica.submit(json!({})).await;
    queue(&replica, &store).await;
    sqlx::query("DELETE FROM webhook_turns").execute(&pool).await.unwrap();
    assert_eq!(due(&store, &[]).await, 0);
    let (mut after, mut looks) = (String::new(), 0);
    while let Some(last) = store.restore_turns(&after, 2).await.unwrap() {
        (after, looks) = (last, looks + 1);
    }
    assert_eq!((looks, due(&store, &[]).await), (1, 3));
    sqlx::query("DELETE FROM webhooks").execute(&pool).await.unwrap();
    assert_eq!(due(&store, &[]).await, 0);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM webhook_turns").fetch_one(&pool).await.unwrap();
    assert_eq!(left, 0, "turns of deleted webhooks are forgotten");
}

/// The second change waits for the end of the turn in which the first one is sent.
#[sqlx::test]
async fn a_turn_ends_although_that_can_not_be_recorded_at_first(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(204)).await;
    let replica = Replica::new(&pool).await;
    replica.create(json!({"url": receiver.url("/")})).await;
    let submission = replica.submit(json!({})).await;
    replica.advance(&submission, "LAUNCHING").await;
    queue(&replica, &Store::new(pool.clone())).await;
    // The look for webhooks without a turn, which comes once a minute, finds nothing: the turn's own end has to be recorded.
    let refused = "CREATE SEQUENCE ends;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF current_query() LIKE 'WITH RECURSIVE%' THEN RETURN NULL; END IF;
            IF current_query() LIKE 'INSERT%' AND nextval('ends') < 3 THEN RAISE EXCEPTION 'refused'; END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER refused BEFORE INSERT ON webhook_turns FOR EACH ROW EXECUTE FUNCTION refuse()";
    sqlx::raw_sql(refused).execute(&pool).await.unwrap();
    let replica = replica.run();
    until("both changes are taken", async || receiver.taken("/").len() == 2).await;
    let ends: i64 = sqlx::query_scalar("SELECT last_value FROM ends").fetch_one(&pool).await.unwrap();
    assert!(ends >= 3, "{ends} ends");
    replica.kill().await;
}

/// The cursor, after the number of the newest event went back.
#[sqlx::test]
async fn the_cursor_never_goes_back(pool: PgPool) {
    let replica = Replica::new(&pool).await;
    let store = Store::new(pool.clone());
    replica.create(json!({"url": "https://hooks.example.org/"})).await;
    replica.submit(json!({})).await;
    queue(&replica, &store).await;
    sqlx::query("UPDATE webhook_cursor SET last = 1000").execute(&pool).await.unwrap();
    store.queue_deliveries(100).await.unwrap();
    let last: i64 = sqlx::query_scalar("SELECT last FROM webhook_cursor").fetch_one(&pool).await.unwrap();
    assert_eq!(last, 1000);
}

/// A reply that comes late changes nothing of a delivery that has ended.
#[sqlx::test]
async fn a_delivery_that_has_ended_stays_as_it_is(pool: PgPool) {
    let replica = Replica::new(&pool).await;
    let store = Store::new(pool.clone());
    let webhook = replica.create(json!({"url": "https://hooks.example.org/"})).await;
    replica.submit(json!({})).await;
    queue(&replica, &store).await;
    let id = store.due_deliveries(webhook["id"].as_str().unwrap(), 10).await.unwrap()[0].id;
    let tried =
        TriedDelivery { http_status: Some(410), error: "gone".to_owned(), pause: Duration::ZERO, is_final: true };
    assert_eq!(store.not_delivered(id, &tried, Duration::from_secs(60)).await.unwrap(), Settled::Dead);
    store.delivered(id, 200).await.unwrap();
    assert_eq!(store.not_delivered(id, &tried, Duration::from_secs(60)).await.unwrap(), Settled::Gone);
    let deliveries = replica.deliveries(&webhook).await;
    assert_eq!((&deliveries[0]["status"], &deliveries[0]["tries"]), (&json!("dead"), &json!(1)));
}

/// Stores webhooks of a tenant with a due delivery each, as submissions with a webhook of their own have. Secret and event are those of
/// a webhook that exists.
async fn many(pool: &PgPool, tenant: &str, url: &str, count: i32) {
    sqlx::query(
        "WITH hooks AS (
             INSERT INTO webhooks (id, tenant, principal, url, format, own, submission_id, states, labels, secrets, since)
             SELECT $1 || '-' || n, $1, 'p', $2, 'cloudevents', false, 's-' || n, '{}', '{}',
                 (SELECT secrets FROM webhooks LIMIT 1), 0 FROM generate_series(1, $3) AS n RETURNING id, tenant
         ), deliveries AS (
             INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event, next_try_at)
             SELECT id, 's', 1, (SELECT event FROM webhook_deliveries LIMIT 1), now() - interval '1 hour' FROM hooks
         )
         INSERT INTO webhook_turns (webhook_id, tenant, due_at) SELECT id, tenant, now() - interval '1 hour' FROM hooks",
    )
    .bind(tenant)
    .bind(url)
    .bind(count)
    .execute(pool)
    .await
    .unwrap();
}

/// Twenty thousand webhooks of one tenant name a dead receiver.
#[sqlx::test]
async fn dead_receivers_of_one_tenant_delay_no_other(pool: PgPool) {
    let receiver =
        Receiver::start(|received, _| if received.path == "/dead" { Answer::Hang } else { Answer::Status(200) }).await;
    let replica = Replica::new(&pool).await;
    replica.create(json!({"url": receiver.url("/alive")})).await;
    replica.submit(json!({})).await;
    queue(&replica, &Store::new(pool.clone())).await;
    many(&pool, "red", &receiver.url("/dead"), 20_000).await;
    let replica = replica.run();
    until("the dead receiver is tried", async || receiver.received().iter().any(|one| one.path == "/dead")).await;
    for _ in 0..3 {
        let so_far = receiver.taken("/alive").len();
        replica.submit(json!({})).await;
        until("the other gets its message", async || receiver.taken("/alive").len() > so_far).await;
    }
    let dead = receiver.received().iter().filter(|one| one.path == "/dead").count();
    assert!(dead <= 4, "{dead} messages for a dead receiver");
}

/// The statement reads a few rows of each tenant, whatever waits behind them.
#[sqlx::test]
async fn looking_for_turns_reads_few_of_twenty_thousand(pool: PgPool) {
    let replica = Replica::new(&pool).await;
    replica.create(json!({"url": "https://hooks.example.org/"})).await;
    replica.submit(json!({})).await;
    queue(&replica, &Store::new(pool.clone())).await;
    many(&pool, "red", "https://dead.example.org/", 20_000).await;
    many(&pool, "blue", "https://alive.example.org/", 3).await;
    let url = pool.connect_options().to_url_lossy().to_string();
    let store = Store::connect(&DatabaseSettings { url, max_connections: 3 }).await.unwrap();
    let reads = "SELECT coalesce(sum(seq_tup_read), 0)::bigint + coalesce(sum(idx_tup_fetch), 0)::bigint
                 FROM pg_stat_user_tables WHERE relname LIKE 'webhook%'";
    let before: i64 = sqlx::query_scalar(reads).fetch_one(&pool).await.unwrap();
    let begun = Instant::now();
    for _ in 0..10 {
        let due = store.due_webhooks(32, &[]).await.unwrap();
        assert_eq!(due.iter().filter(|one| one.webhook.tenant == "red").count(), 32);
        assert_eq!(due.iter().filter(|one| one.webhook.tenant == "blue").count(), 3);
        assert_eq!(due.len(), 36);
        assert_eq!(store.next_turn().await.unwrap(), None);
    }
    println!("{:?}", begun.elapsed() / 10);
    store.close().await;
    let mut read = 0;
    // Statistics are published by connections that end.
    until("statistics are published", async || {
        read = sqlx::query_scalar::<_, i64>(reads).fetch_one(&pool).await.unwrap() - before;
        read > 0
    })
    .await;
    assert!(read < 10 * 300, "{read} rows were read");
}

/// All tenants wait for the statement that queues: a large table without statistics and the backlog of one webhook don't delay it.
#[sqlx::test]
async fn queueing_reads_few_rows_for_each_event(pool: PgPool) {
    const MANY: i32 = 20_000;
    let replica = Replica::new(&pool).await;
    replica.create(json!({"url": "https://dead.example.org/"})).await;
    replica.submit(json!({})).await;
    queue(&replica, &Store::new(pool.clone())).await;
    for table in ["submissions", "submission_events", "webhook_deliveries"] {
        let statement = sqlx::AssertSqlSafe(format!("ALTER TABLE {table} SET (autovacuum_enabled = off)"));
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    for statement in [
        "WITH old AS (
             INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at)
             SELECT 'driver-20200101000000-' || n, -n, 'FINISHED', '{}', '4.3.0', 'u', 'spark', '{}', now()
             FROM generate_series(1, $1) AS n RETURNING id, number
         )
         INSERT INTO submission_events (submission_id, attempt, state, sequence) SELECT id, 1, 'FINISHED', number FROM old",
        "INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event)
         SELECT webhook_id, 's-' || n, n, event FROM webhook_deliveries, generate_series(1, $1) AS n",
    ] {
        sqlx::query(statement).bind(MANY).execute(&pool).await.unwrap();
    }
    for _ in 0..10 {
        replica.submit(json!({})).await;
    }
    while replica.service.events.publish().await.unwrap().more {}
    let reads = "SELECT relname::text, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables
                 WHERE relname IN ('submissions', 'submission_events', 'webhook_deliveries', 'attempts') ORDER BY 1";
    let url = pool.connect_options().to_url_lossy().to_string();
    // The statistics of the connections that wrote are published with their ends.
    pool.close().await;
    let pool = PgPool::connect(&url).await.unwrap();
    let before: Vec<(String, i64)> = sqlx::query_as(reads).fetch_all(&pool).await.unwrap();
    let store = Store::connect(&DatabaseSettings { url, max_connections: 3 }).await.unwrap();
    assert_eq!(store.queue_deliveries(1000).await.unwrap().deliveries, 10);
    store.close().await;
    let mut read = before.clone();
    until("statistics are published", async || {
        read = sqlx::query_as(reads).fetch_all(&pool).await.unwrap();
        read != before
    })
    .await;
    pool.close().await;
    let read: Vec<_> = read.into_iter().zip(&before).map(|((table, now), (_, before))| (table, now - before)).collect();
    assert!(read.iter().all(|(_, rows)| *rows < 200), "{read:?}");
}
