//! Whether the driver pods that a watch shows are recorded, and their attempts have ended.

use sparkgate::{
    store::{RecordedDriver, Store},
    submission::{Outcome, Placement, State, StateChange},
};
use sqlx::PgPool;

use crate::support::{accept, claim_one, session};

#[sqlx::test]
async fn a_driver_has_ended_with_its_attempt(pool: PgPool) {
    let store = Store::new(pool.clone());
    let holder = session(&store).await;
    let id = accept(&store, "a").await;
    let row = "UPDATE submissions SET max_retries_infrastructure = 1, names = names || '{\"appId\": \"spark-1\"}'";
    sqlx::query(row).execute(&pool).await.unwrap();
    let claimed = claim_one(&store, holder).await;
    assert!(store.record_pod(&id, 1, claimed.epoch, "u").await.unwrap().is_some());
    let ended = async || {
        let pods = [(&id, 1, "u"), (&id, 1, "forged"), (&id, 2, "u"), (&id, 2, "v")];
        let mut all = store.recorded_drivers(&pods).await.unwrap();
        all.sort_by(|one, other| one.pod_uid.cmp(&other.pod_uid));
        all.into_iter()
            .map(|RecordedDriver { pod_uid, has_ended, application }| (pod_uid, has_ended, application))
            .collect::<Vec<_>>()
    };
    let shown = |uid: &str, has_ended| (uid.to_owned(), has_ended, "spark-1".to_owned());
    assert_eq!(ended().await, [shown("u", false)]);

    let evicted = StateChange::Ended(Outcome::new(State::Failed, "Evicted", "no room"));
    let of = |uid: &str| Placement { pod_uid: Some(uid.to_owned()), ..Placement::default() };
    assert!(store.advance(&id, 1, None, &evicted, &of("u")).await.unwrap());
    assert_eq!(ended().await, [shown("u", true)], "another attempt follows");
    assert!(store.advance(&id, 2, None, &StateChange::Running, &of("v")).await.unwrap());
    assert_eq!(ended().await, [shown("u", true), shown("v", false)]);
    let lost = StateChange::Ended(Outcome::new(State::Finished, "Completed", "done"));
    assert!(store.advance(&id, 2, None, &lost, &of("v")).await.unwrap());
    assert_eq!(ended().await, [shown("u", true), shown("v", true)]);
}
