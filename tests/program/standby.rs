//! A database that is a standby, as host names and poolers may lead to one during a failover.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use sparkgate::store::{ConnectError, DatabaseSettings, Horizon, LostNumbers, Store};
use sparkgate_testing::{fault_proxy::FaultProxy, postgres::Postgres};
use sqlx::Connection;
use tokio::time::timeout;
use uuid::Uuid;

/// Starts a server, and returns it with its settings.
async fn started() -> (Postgres, DatabaseSettings) {
    let mut postgres = Postgres::new(&format!("standby-{}", Uuid::new_v4().simple()));
    postgres.ready().await;
    let settings = settings(&postgres, postgres.port);
    (postgres, settings)
}

/// Returns the settings of a server behind a port.
fn settings(postgres: &Postgres, port: u16) -> DatabaseSettings {
    DatabaseSettings { url: postgres.url("postgres", port).unwrap(), max_connections: 6 }
}

#[tokio::test]
async fn a_standby_is_refused_and_not_read() {
    let (mut postgres, settings) = started().await;
    let store = Store::connect(&settings).await.unwrap();
    store.ping().await.unwrap();

    postgres.make_standby();
    postgres.stop().await;
    postgres.ready().await;
    let refused = Store::connect(&settings).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Standby { .. }) && refused.may_pass(), "{refused:?}");
    // The server answers queries, and this pool has worked with the server before.
    assert!(store.ping().await.is_err() && store.installation().await.is_err());

    postgres.promote().await;
    store.installation().await.unwrap();
    Store::connect(&settings).await.unwrap().close().await;
}

/// A pooler may redirect a connection from the primary to another server, and a primary may stop accepting writes.
#[tokio::test]
async fn a_connection_is_checked_for_a_standby_repeatedly() {
    let (postgres, settings) = started().await;
    let store = Store::connect(&settings).await.unwrap();
    store.ping().await.unwrap();
    let read_only = async |yes: bool| {
        let mut connection = postgres.connect().await;
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {yes}");
        sqlx::query(sqlx::AssertSqlSafe(set)).execute(&mut connection).await.unwrap();
        sqlx::query("SELECT pg_reload_conf()").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    };
    let becomes = async |well: bool| {
        let so = async { while store.ping().await.is_ok() != well {} };
        timeout(Duration::from_secs(30), so).await.unwrap();
    };
    read_only(true).await;
    becomes(false).await;
    read_only(false).await;
    becomes(true).await;
}

/// A primary that was only cut off for a while goes on to accept writes. A lease that is renewed there, while claims are made on
/// the new primary, would be worth nothing.
#[tokio::test]
async fn connections_to_the_old_primary_are_closed_once_one_leads_to_the_new_one() {
    let (old, _) = started().await;
    let address = |server: &Postgres| SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let proxy = FaultProxy::start(address(&old)).await;
    let store = Store::connect(&settings(&old, proxy.address().port())).await.unwrap();
    let holder = Uuid::new_v4();
    let acquire = async |name: &str| store.acquire_lease(name, holder, Duration::from_secs(20)).await;
    let acquired = async { while !acquire("before").await.is_ok_and(|acquired| acquired) {} };
    timeout(Duration::from_secs(30), acquired).await.unwrap();
    let new = old.standby_left_behind().await;
    new.promote().await;
    proxy.redirect(address(&new));

    // All connections but those of leases.
    let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'sparkgate' AND query NOT LIKE '%lock_timeout = 500;%' AND query NOT LIKE '%leases%'";
    let ended: i64 = sqlx::query_scalar(others).fetch_one(&mut old.connect().await).await.unwrap();
    assert!(ended > 0, "no connection of requests");
    let mut on_new = new.connect().await;
    let follows = async {
        loop {
            let _ = store.ping().await;
            let _ = acquire("after").await;
            let held = "SELECT EXISTS (SELECT FROM leases WHERE name = 'after')";
            if sqlx::query_scalar::<_, bool>(held).fetch_one(&mut on_new).await.unwrap() {
                return;
            }
        }
    };
    timeout(Duration::from_secs(60), follows).await.expect("leases are acquired on the old primary");
}

/// Events that the standby lacks were numbered before: their numbers aren't given to others.
#[tokio::test]
async fn a_promoted_standby_continues_above_all_numbers_that_may_be_lost() {
    let (mut old, before) = started().await;
    let store = Store::connect(&before).await.unwrap();
    let publish = async |store: &Store, server: &Postgres| {
        let event = "INSERT INTO submission_events (submission_id, attempt, state) VALUES ('driver-1', 1, 'QUEUED')";
        sqlx::query(event).execute(&mut server.connect().await).await.unwrap();
        while store.numbered(&mut Horizon::default()).await.unwrap().more {
            store.number_events(&Horizon::default()).await.unwrap();
        }
        store.numbered(&mut Horizon::default()).await.unwrap()
    };
    assert_eq!(publish(&store, &old).await.last, 1);
    let new = old.standby_left_behind().await;
    assert_eq!(publish(&store, &old).await.last, 2, "the standby doesn't get this one");
    store.close().await;
    old.stop().await;
    new.promote().await;

    let store = Store::connect(&settings(&new, new.port)).await.unwrap();
    let found = store.numbered(&mut Horizon::default()).await.unwrap();
    assert!(found.is_new_history && found.last == 1, "{found:?}");
    let found = publish(&store, &new).await;
    assert_eq!(found.lost, Some(LostNumbers { after: 1, until: found.last - 1 }));
    assert!(!found.is_new_history && found.last > 1_000_000, "{found:?}");
    let epoch: i64 =
        sqlx::query_scalar("SELECT lowest_claim_epoch()").fetch_one(&mut new.connect().await).await.unwrap();
    assert!(epoch > 1_000_000, "no claim has the number of a lost one: {epoch}");
    store.close().await;
}
