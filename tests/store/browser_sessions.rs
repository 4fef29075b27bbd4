//! Sessions of browsers: how they end, and which replica renews one.

use std::time::Duration;

use sparkgate::store::{Actor, AuditNote, NewBrowserSession, Store};
use sqlx::PgPool;

const MINUTE: Duration = Duration::from_secs(60);

fn new(id: u8) -> NewBrowserSession {
    NewBrowserSession {
        id: [id; 32],
        issuer: "corp".to_owned(),
        principal: "corp:alice".to_owned(),
        sealed: vec![id],
        idle: MINUTE,
        lifetime: 60 * MINUTE,
    }
}

fn alice() -> Actor {
    Actor { principal: "corp:alice".to_owned(), address: None, request_id: "r".to_owned(), note: AuditNote::default() }
}

async fn ids(pool: &PgPool) -> Vec<Vec<u8>> {
    sqlx::query_scalar("SELECT id FROM browser_sessions ORDER BY id").fetch_all(pool).await.unwrap()
}

async fn set(pool: &PgPool, columns: &str) {
    let statement = sqlx::AssertSqlSafe(format!("UPDATE browser_sessions SET {columns}"));
    sqlx::query(statement).execute(pool).await.unwrap();
}

#[sqlx::test]
async fn a_session_replaces_the_one_before_and_old_ones_are_deleted(pool: PgPool) {
    let store = Store::new(pool.clone());
    store.create_browser_session(&new(1), None, &alice()).await.unwrap();
    store.create_browser_session(&new(2), Some(&[9; 32]), &alice()).await.unwrap();
    assert_eq!(ids(&pool).await, [[1; 32], [2; 32]]);
    store.create_browser_session(&new(3), Some(&[1; 32]), &alice()).await.unwrap();
    assert_eq!(ids(&pool).await, [[2; 32], [3; 32]]);
    set(&pool, "expires_at = now() - interval '1 s'").await;
    store.create_browser_session(&new(4), Some(&[3; 32]), &alice()).await.unwrap();
    assert_eq!(ids(&pool).await, [[4; 32]]);
}

#[sqlx::test]
async fn a_session_lasts_until_it_is_idle_or_old_or_ended(pool: PgPool) {
    let store = Store::new(pool.clone());
    let lasts = async || store.browser_session(&[1; 32], false).await.unwrap().is_some();
    store.create_browser_session(&new(1), None, &alice()).await.unwrap();
    assert!(lasts().await);
    set(&pool, "last_used_at = now() - interval '59 s'").await;
    let found = store.browser_session(&[1; 32], true).await.unwrap().unwrap();
    assert_eq!(
        (found.issuer.as_str(), found.principal.as_str(), found.sealed.as_slice()),
        ("corp", "corp:alice", &[1][..])
    );
    let used: bool = sqlx::query_scalar("SELECT last_used_at > now() - interval '30 s' FROM browser_sessions")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(used, "the use is noted");
    set(&pool, "last_used_at = now() - interval '61 s'").await;
    assert!(!lasts().await && store.browser_session(&[1; 32], true).await.unwrap().is_none());
    set(&pool, "last_used_at = now(), expires_at = now()").await;
    assert!(!lasts().await);
    set(&pool, "expires_at = now() + interval '1 h'").await;
    assert!(lasts().await && store.end_browser_session(&[1; 32], Some(&alice())).await.unwrap());
    assert!(!lasts().await && !store.end_browser_session(&[1; 32], Some(&alice())).await.unwrap());
    let audit: Vec<String> =
        sqlx::query_scalar("SELECT action || ' ' || principal FROM audit ORDER BY id").fetch_all(&pool).await.unwrap();
    assert_eq!(audit, ["sign-in corp:alice", "sign-out corp:alice"]);
}

#[sqlx::test]
async fn one_replica_renews_a_session(pool: PgPool) {
    let store = Store::new(pool.clone());
    store.create_browser_session(&new(1), None, &alice()).await.unwrap();
    let claim = async |renewals| store.claim_browser_session(&[1; 32], renewals, MINUTE).await.unwrap();
    assert_eq!((claim(0).await, claim(0).await), (true, false));
    // A renewal that failed gives the claim back.
    assert!(store.renew_browser_session(&[1; 32], 0, None).await.unwrap() && claim(0).await);
    assert!(store.renew_browser_session(&[1; 32], 0, Some(&[7])).await.unwrap());
    assert!(!claim(0).await, "it has been renewed since");
    let found = store.browser_session(&[1; 32], false).await.unwrap().unwrap();
    assert_eq!((found.renewals, found.sealed.as_slice()), (1, &[7][..]));
    assert!(!store.renew_browser_session(&[1; 32], 0, Some(&[8])).await.unwrap(), "a late replica changes nothing");
    assert!(claim(1).await);
    set(&pool, "renewing_until = now() - interval '1 s'").await;
    assert!(claim(1).await, "the claim of a replica that is gone ends");
}
