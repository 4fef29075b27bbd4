//! When deliveries are due.

use std::time::Duration;

use serde_json::json;
use sparkgate::store::Store;
use sqlx::PgPool;

use crate::world::Replica;

/// Numbers all events and queues them.
async fn queue(replica: &Replica, store: &Store) {
    while replica.service.events.publish().await.unwrap().more {}
    store.queue_deliveries(100).await.unwrap();
}

#[sqlx::test]
async fn a_change_behind_one_that_waits_is_not_due(pool: PgPool) {
    // Its loops don't run.
    let replica = Replica::new(&pool).await;
    let store = Store::new(pool.clone());
    let webhook = replica.create(json!({"url": "https://hooks.example.org/"})).await;
    let served = [webhook["id"].as_str().unwrap().to_owned()];
    assert_eq!(store.next_delivery(&[]).await.unwrap(), None);
    let id = replica.submit(json!({})).await;
    queue(&replica, &store).await;
    assert_eq!(store.next_delivery(&[]).await.unwrap(), Some(Duration::ZERO));
    assert_eq!(store.next_delivery(&served).await.unwrap(), None, "it is being served");
    assert_eq!(store.due_webhooks().await.unwrap().len(), 1);

    sqlx::query("UPDATE webhook_deliveries SET next_try_at = now() + interval '1 hour'").execute(&pool).await.unwrap();
    replica.advance(&id, "LAUNCHING").await;
    queue(&replica, &store).await;
    let times = "SELECT count(*), count(DISTINCT next_try_at) FROM webhook_deliveries";
    let (deliveries, times): (i64, i64) = sqlx::query_as(times).fetch_one(&pool).await.unwrap();
    assert_eq!((deliveries, times), (2, 1), "the second change is due with the first");
    // Also if its time has come, as that of one that was queued while the first one failed.
    let second = "UPDATE webhook_deliveries SET next_try_at = now() WHERE event ->> 'state' = 'LAUNCHING'";
    sqlx::query(second).execute(&pool).await.unwrap();
    assert!(store.due_webhooks().await.unwrap().is_empty());
    let next = store.next_delivery(&[]).await.unwrap().unwrap();
    assert!((Duration::from_secs(3000)..=Duration::from_secs(3600)).contains(&next), "{next:?}");
}
