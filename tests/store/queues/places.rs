//! Many submissions that wait are held, released and moved.

use sparkgate::store::{Destination, Matching, Move};
use sqlx::PgPool;

use super::*;

fn matching(filter: &Filter, after: Option<i64>, limit: u32) -> Matching<'_> {
    Matching { filter, after, limit }
}

async fn events(pool: &PgPool) -> Vec<String> {
    let all = "SELECT submission_id || ' ' || reason FROM submission_events WHERE reason IS NOT NULL ORDER BY id";
    sqlx::query_scalar(all).fetch_all(pool).await.unwrap()
}

/// The first submission has the number 0.
#[sqlx::test]
async fn pages_begin_with_the_very_first_submission(pool: PgPool) {
    let store = Store::new(pool.clone());
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(accept(&store, "red", in_queue("night")).await);
    }
    accept(&store, "red", in_queue("day")).await;
    let (all, by) = (store.all(), ("corp:ann", None));
    let filter = Filter { queue: Some("night".to_owned()), ..Filter::default() };
    let (mut after, mut held) = (None, Vec::new());
    for expected in [2, 2, 1] {
        let page = all.hold_next(matching(&filter, after, 2), by, Some("no data")).await.unwrap();
        assert_eq!(page.ids.len(), expected);
        held.extend(page.ids);
        after = page.last;
    }
    assert_eq!(held, ids);
    assert_eq!(text(&pool, "number", &ids[0]).await.as_deref(), Some("0"));
    let again = all.hold_next(matching(&filter, None, 9), by, None).await.unwrap();
    assert!(again.ids.is_empty() && again.last.is_none(), "they are held already: {again:?}");
    let released = all.release_next(matching(&Filter::default(), Some(0), 9), None).await.unwrap();
    assert_eq!(released.ids, ids[1..]);
    assert_eq!(events(&pool).await.iter().filter(|event| event.ends_with(" Held")).count(), 5);
}

#[sqlx::test]
async fn as_many_move_as_their_new_queue_has_room_for(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    accept(&store, "red", in_queue("night")).await;
    let mut ids = Vec::new();
    for queue in ["day", "day", "noon"] {
        ids.push(accept(&store, "red", in_queue(queue)).await);
    }
    let all = store.all();
    let filter = Filter { tenant: Some("red".to_owned()), ..Filter::default() };
    let waits = all.next_to_requeue(matching(&filter, Some(0), 9)).await.unwrap();
    assert_eq!(waits.iter().map(|one| &one.id).collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>());
    let round = store.queue_round(10, &[], &[]).await.unwrap();
    let moves: Vec<_> = waits.iter().map(|one| Move { id: &one.id, from: &one.place, priority: 4 }).collect();
    let to = Destination { queue: "night".to_owned(), max_queued: Some(3), timeout: Some(60) };
    let moved = all.requeue(("corp:ann", None), &moves, &to).await.unwrap();
    assert_eq!((moved.ids.as_slice(), moved.is_full), (&ids[..2], true));
    let backlogs = store.queue_backlogs().await.unwrap();
    let waiting = |name: &str| backlogs.iter().filter(|one| one.queue == name).map(|one| one.waiting).sum::<i64>();
    assert_eq!((waiting("night"), waiting("day"), waiting("noon")), (3, 0, 1));
    assert_eq!(store.admit((session, QUEUES), round.version, &[]).await.unwrap(), None, "the round began before");
    let events = events(&pool).await;
    assert_eq!(events, [format!("{} Requeued", ids[0]), format!("{} Requeued", ids[1])]);
    assert_eq!(text(&pool, "queue || priority || queue_timeout", &ids[1]).await.as_deref(), Some("night460"));
    // Those have left their queue, and the last one finds no room again.
    let again = all.requeue(("corp:ann", None), &moves, &to).await.unwrap();
    assert!(again.ids.is_empty() && again.is_full, "{again:?}");
}
