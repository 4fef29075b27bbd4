//! The traces of submissions.

use sparkgate::{
    store::{Horizon, NewSubmission, Store},
    submission::{Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::PgPool;

use crate::support::{draw, new, session};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=a";

async fn accept(store: &Store, pod: &str, trace: Option<&str>) -> SubmissionId {
    let drawn = draw(store).await;
    let id = drawn.id.clone();
    store.accept(NewSubmission { trace: trace.map(str::to_owned), ..new(drawn, pod) }).await.unwrap();
    id
}

#[sqlx::test]
async fn a_trace_is_kept_from_acceptance_to_the_claim_of_any_replica(pool: PgPool) {
    let store = Store::new(pool);
    let session = session(&store).await;
    let (traced, other) = (accept(&store, "a", Some(TRACE)).await, accept(&store, "b", None).await);
    let both = [traced.clone(), other.clone()];
    let traces = store.traces(&both.each_ref()).await.unwrap();
    assert_eq!(traces.into_iter().collect::<Vec<_>>(), [(traced.clone(), TRACE.to_owned())]);
    let claimed = store.claim(session, 2, &[], &[]).await.unwrap();
    let claimed: Vec<_> = claimed.into_iter().map(|claimed| (claimed.id, claimed.trace)).collect();
    assert_eq!(claimed, [(traced, Some(TRACE.to_owned())), (other, None)]);
}

#[sqlx::test]
async fn submissions_that_share_a_statement_keep_their_own_traces(pool: PgPool) {
    let store = Store::new(pool);
    let accepted = futures::future::join_all((0..20).map(|n| {
        let trace = (n % 3 == 0).then(|| format!("00-{n:032x}-b7ad6b7169203331-01"));
        let store = store.clone();
        async move { (accept(&store, &format!("pod-{n}"), trace.as_deref()).await, trace) }
    }))
    .await;
    let ids: Vec<_> = accepted.iter().map(|(id, _)| id).collect();
    let traces = store.traces(&ids).await.unwrap();
    for (id, trace) in &accepted {
        assert_eq!(traces.get(id), trace.as_ref(), "{id}");
    }
}

#[sqlx::test]
async fn an_end_is_reported_once_with_all_attempts_and_their_states(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (id, other) = (accept(&store, "pod-1", Some(TRACE)).await, accept(&store, "pod-2", None).await);
    let launched = "UPDATE submissions SET max_retries_infrastructure = 1, state = 'PENDING'";
    sqlx::query(launched).execute(&pool).await.unwrap();
    let of =
        |uid: &str| Placement { pod_uid: Some(uid.to_owned()), node: Some("n".to_owned()), ..Placement::default() };
    let evicted = StateChange::Ended(Outcome::new(State::Failed, "Evicted", "low on memory"));
    assert!(store.advance(&id, 1, None, &evicted, &of("u-1")).await.unwrap());
    let numbered = async || {
        let mut ended = Vec::new();
        store.number_events_of(&Horizon::default(), &mut ended).await.unwrap();
        ended
    };
    let ended = numbered().await;
    assert_eq!(ended, [(id.to_string(), 1)]);
    assert_eq!(store.ended_traces(&ended).await.unwrap(), [], "another attempt follows");

    sqlx::query(launched).execute(&pool).await.unwrap();
    assert!(store.advance(&id, 2, None, &StateChange::Running, &of("u-2")).await.unwrap());
    let failed = StateChange::Ended(Outcome { exit_code: Some(1), ..Outcome::new(State::Failed, "Error", "exited") });
    assert!(store.advance(&id, 2, None, &failed, &of("u-2")).await.unwrap());
    assert!(store.advance(&other, 1, None, &failed, &of("u-3")).await.unwrap());
    let again = numbered().await;
    assert_eq!(again, [(id.to_string(), 2), (other.to_string(), 1)]);
    assert_eq!(
        store.ended_traces(&ended).await.unwrap(),
        [],
        "the end of the first attempt is not that of the submission"
    );
    let traces = store.ended_traces(&again).await.unwrap();
    let [trace] = &traces[..] else { panic!("only one has a trace: {traces:#?}") };
    assert_eq!((&trace.id, trace.trace.as_str()), (&id, TRACE));
    let shown: Vec<_> = trace
        .attempts
        .iter()
        .map(|it| (it.record.attempt, it.record.state, it.record.exit_code, it.record.pod_uid.as_deref()))
        .collect();
    assert_eq!(shown, [(1, State::Failed, None, Some("u-1")), (2, State::Failed, Some(1), Some("u-2"))]);
    let states = trace.attempts[1].states.iter().map(|(state, _)| *state).collect::<Vec<_>>();
    assert_eq!(states, [State::Queued, State::Running, State::Failed]);
    assert_eq!(numbered().await, []);
}
