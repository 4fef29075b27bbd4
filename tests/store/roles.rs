//! The store with an account that may only read and write the tables.

use std::time::Duration;

use sparkgate::{
    store::{Actor, AuditFilter, AuditNote, ConnectError, DatabaseSettings, Horizon, Scope, Store, replica},
    submission::{Outcome, Placement, State, StateChange, error_chain},
};
use sparkgate_testing::documented_grants;
use sqlx::{ConnectOptions, PgPool};
use uuid::Uuid;

use crate::support::{accept, claim_one, executor, session, state};

/// Creates an account of its own, because roles belong to the whole server.
async fn account(pool: &PgPool) -> (String, DatabaseSettings) {
    let role = format!("app_{}", Uuid::new_v4().simple());
    let create = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'secret'; REVOKE CREATE ON SCHEMA public FROM PUBLIC; {}",
        documented_grants(&role)
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(pool).await.unwrap();
    let options = pool.connect_options().as_ref().clone().username(&role).password("secret");
    (role, DatabaseSettings { url: options.to_url_lossy().to_string(), max_connections: 16 })
}

async fn forget(pool: &PgPool, role: &str) {
    let drop = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(pool).await.unwrap();
}

#[sqlx::test]
async fn a_role_without_ddl_rights_serves_a_whole_submission(pool: PgPool) {
    let (role, settings) = account(&pool).await;
    // Another session holds the lock for migrations. No migration is missing, so the start must not wait for it.
    let mut other = pool.acquire().await.unwrap();
    let lock = sqlx::query("SELECT pg_advisory_lock($1)").bind(0x7370_6172_6b67_7465_i64);
    lock.execute(&mut *other).await.unwrap();
    let store = Store::connect(&settings).await.unwrap();
    while store.ping().await.is_err() || store.draw().await.is_err() {}
    let holder = session(&store).await;
    store.forget_sessions().await.unwrap();
    store.installation().await.unwrap();
    assert!(store.keep_watch_position("*", "7", (&replica(holder), holder)).await.unwrap());

    let id = accept(&store, "a").await;
    sqlx::query("UPDATE submissions SET max_retries_infrastructure = 1").execute(&pool).await.unwrap();
    let claimed = claim_one(&store, holder).await;
    assert!(store.record_pod(&id, 1, claimed.epoch, "u").await.unwrap().is_some());
    let placement = Placement { pod_uid: Some("u".to_owned()), ..Placement::default() };
    assert!(store.advance(&id, 1, Some(claimed.epoch), &StateChange::Launched, &placement).await.unwrap());
    store.note_waiting(&id, 1, "Unschedulable", "no node").await.unwrap();
    assert!(store.advance(&id, 1, None, &StateChange::Running, &placement).await.unwrap());
    assert_eq!(store.write_executors(&[executor(&id)]).await.unwrap(), 1);
    let lost = StateChange::Ended(Outcome::new(State::Lost, "Vanished", "gone"));
    assert!(store.advance(&id, 1, None, &lost, &placement).await.unwrap());
    store.keep_log(&id, 1, None, &[]).await.unwrap();
    let mut horizon = Horizon::default();
    assert!(store.numbered(&mut horizon).await.unwrap().more);
    assert!(store.number_events(&horizon).await.unwrap() > 0);
    assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 0);
    assert!(store.all().request_kill(&id, &Scope::installation(), None).await.unwrap().live);
    assert_eq!(state(&store, &id).await, State::Killed);
    assert_eq!(store.all().clear_ended(None).await.unwrap(), 1);
    let pods = store.ended_pods(Duration::ZERO, 10, &[], None).await.unwrap();
    assert_eq!(pods.len(), 1);
    store.put_clean_up_off(&[id.as_str()], Duration::ZERO).await.unwrap();
    store.note_pods_deleted(&[(id.as_str(), 1), (id.as_str(), 2)]).await.unwrap();
    sqlx::query("UPDATE attempts SET pod_deleted_at = now() - interval '1 day'").execute(&pool).await.unwrap();
    assert_eq!(store.delete_ended(Duration::ZERO, 10, None).await.unwrap(), 1);
    let actor = Actor {
        principal: "corp:alice".to_owned(),
        address: None,
        request_id: "r".to_owned(),
        note: AuditNote::default(),
    };
    store.write_audit(&actor, "submit", (None, None), false, "").await.unwrap();
    assert_eq!(store.all().audit(&AuditFilter::default(), 0, 10).await.unwrap().len(), 1);
    let app = PgPool::connect(&settings.url).await.unwrap();
    for change in ["UPDATE audit SET verdict = 'allowed'", "DELETE FROM audit", "TRUNCATE audit"] {
        let denied = sqlx::query(change).execute(&app).await.unwrap_err();
        assert_eq!(denied.as_database_error().unwrap().code().as_deref(), Some("42501"), "{change}");
    }
    let denied = store.prune_audit(Duration::ZERO, 10).await.unwrap_err();
    assert!(error_chain(&denied).contains("permission denied for table audit"), "{denied}");
    app.close().await;
    store.end_leases(holder).await.unwrap();
    store.close().await;
    drop(other);
    forget(&pool, &role).await;
}

#[sqlx::test]
async fn a_role_that_may_not_migrate_is_refused_if_a_migration_is_missing(pool: PgPool) {
    let (role, settings) = account(&pool).await;
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = 14").execute(&pool).await.unwrap();
    let error = Store::connect(&settings).await.unwrap_err();
    assert!(matches!(error, ConnectError::Migrate { .. }) && !error.may_pass(), "{error:?}");
    forget(&pool, &role).await;
}
