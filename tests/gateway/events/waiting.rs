//! Waiting for a submission.

use std::time::Duration;

use sparkgate::{
    service::EventFilter,
    store::Store,
    submission::{Placement, StateChange},
};
use sqlx::PgPool;
use tokio::time::timeout;

use crate::events::{
    client::{Stream, get},
    world::Replica,
};

const LIMIT: Duration = Duration::from_secs(20);

#[sqlx::test]
async fn a_wait_returns_at_the_end_and_in_the_requested_state(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let id = replica.submit().await;
    let end = format!("/v1/submissions/{id}/wait?timeoutSeconds=60");
    let begun = format!("{end}&state=PENDING");
    let acting = async {
        // The write of another replica: this replica gets no signal.
        let store = Store::new(pool.clone());
        assert!(store.advance(&id, 1, None, &StateChange::Launched, &Placement::default()).await.unwrap());
    };
    let (begun, ()) = timeout(LIMIT, async { tokio::join!(get(replica.address, &begun), acting) }).await.unwrap();
    assert_eq!((begun.status, begun.waited.as_deref()), (200, Some("done")));
    assert_eq!((&begun.body["id"], &begun.body["state"]), (&id.as_str().into(), &"PENDING".into()));
    let acting = async {
        let killed = "WITH ended AS (UPDATE submissions SET state = 'KILLED', finished_at = now() RETURNING id)
            INSERT INTO submission_events (submission_id, attempt, state) SELECT id, 1, 'KILLED' FROM ended";
        sqlx::query(killed).execute(&pool).await.unwrap();
    };
    let (ended, ()) = timeout(LIMIT, async { tokio::join!(get(replica.address, &end), acting) }).await.unwrap();
    assert_eq!((ended.waited.as_deref(), &ended.body["state"]), (Some("done"), &"KILLED".into()));
    let again = timeout(LIMIT, get(replica.address, &end)).await.unwrap();
    assert_eq!(again.waited.as_deref(), Some("done"), "it has ended already");
    let unknown = get(replica.address, "/v1/submissions/driver-20260101000000-9999/wait").await;
    assert_eq!((unknown.status, &unknown.body["code"]), (404, &"submission-not-found".into()));
}

#[sqlx::test]
async fn a_wait_that_times_out_returns_the_current_state(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let (id, other) = (replica.submit().await, replica.submit().await);
    let target = format!("/v1/submissions/{id}/wait?timeoutSeconds=1");
    let caller = replica.service.anonymous();
    let acting = replica.service.submissions.kill(&caller, &other);
    let (answer, _) = tokio::join!(get(replica.address, &target), acting);
    assert_eq!((answer.status, answer.waited.as_deref()), (200, Some("timeout")));
    assert_eq!(answer.body["state"], "QUEUED");
    let answer = get(replica.address, &format!("/v1/submissions/{id}/wait?timeoutSeconds=61")).await;
    assert_eq!((answer.status, &answer.body["code"]), (400, &"invalid-parameter".into()));
}

#[sqlx::test]
async fn a_shutdown_ends_waits_and_streams(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let id = replica.submit().await;
    let mut stream = Stream::open(replica.address, "/v1/events?after=0", None).await.ok().unwrap();
    assert_eq!(stream.next().await.unwrap().json()["submissionId"], id.as_str());
    let target = format!("/v1/submissions/{id}/wait?timeoutSeconds=60");
    let address = replica.address;
    let waiting = tokio::spawn(async move { get(address, &target).await });
    // Succeeds until the stream and the wait occupy both slots: then the wait has begun.
    let caller = replica.service.anonymous();
    while replica.service.events.subscribe(&caller, EventFilter::of(&caller), None, 2).await.is_ok() {}
    replica.end().await;
    assert_eq!(waiting.await.unwrap().waited.as_deref(), Some("timeout"));
    assert!(stream.next().await.is_none());
}
