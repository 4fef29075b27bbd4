//! The positions of watches: only the holder of a watch's lease stores one.

use sparkgate::store::Store;
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::LEASE;

const WATCH: &str = "watch/*";

async fn expire(pool: &PgPool) {
    sqlx::query("UPDATE leases SET expires_at = clock_timestamp()").execute(pool).await.unwrap();
}

#[sqlx::test]
async fn a_position_is_stored_only_under_the_lease_of_its_watch(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    let keep = async |holder, version: &str| store.keep_watch_position("*", version, (WATCH, holder)).await.unwrap();
    let position = async || store.watch_position("*").await.unwrap();
    assert!(!keep(first, "5").await);
    assert_eq!(position().await, None);

    assert!(store.acquire_lease(WATCH, first, LEASE).await.unwrap());
    assert!(keep(first, "10").await && keep(first, "20").await);
    assert_eq!(position().await.as_deref(), Some("20"));

    // The first holder is stopped; the second processes what follows.
    expire(&pool).await;
    assert!(!keep(first, "21").await, "the lease has expired");
    assert!(store.acquire_lease(WATCH, second, LEASE).await.unwrap());
    assert!(keep(second, "90").await);
    assert!(!keep(first, "21").await);
    assert_eq!(position().await.as_deref(), Some("90"));

    // Versions of a cluster that was restored from a backup are lower.
    assert!(keep(second, "7").await);
    assert_eq!(position().await.as_deref(), Some("7"));
}

/// The statement of a holder that was stopped in it: it has seen the lease as its own, and writes after the next holder.
#[sqlx::test]
async fn a_late_write_of_an_earlier_holder_changes_no_position(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    assert!(store.acquire_lease(WATCH, first, LEASE).await.unwrap());
    assert!(store.keep_watch_position("*", "10", (WATCH, first)).await.unwrap());
    expire(&pool).await;
    assert!(store.acquire_lease(WATCH, second, LEASE).await.unwrap());
    assert!(store.keep_watch_position("*", "90", (WATCH, second)).await.unwrap());
    // As the first holder's snapshot shows it.
    let before = "UPDATE leases SET holder = $1, epoch = epoch - 1 WHERE name = 'watch/*'";
    sqlx::query(before).bind(first).execute(&pool).await.unwrap();
    assert!(!store.keep_watch_position("*", "11", (WATCH, first)).await.unwrap());
    assert_eq!(store.watch_position("*").await.unwrap().as_deref(), Some("90"));
}
