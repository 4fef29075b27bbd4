//! Submissions that are accepted concurrently share a statement, and nothing else.

use std::collections::{BTreeMap, HashSet};

use futures::future::join_all;
use sparkgate::store::{Accepted, Error, Found, NewSubmission, Options, Store, Submission};
use sqlx::PgPool;

use crate::support::new;

async fn keyed(store: &Store, key: Option<String>) -> NewSubmission {
    let new = new(store.draw().await.unwrap(), "p-driver");
    let options = Options { idempotency_key: key, ..Options::default() };
    NewSubmission { name: "app".to_owned(), owner: "etl".to_owned(), options, fingerprint: vec![1], ..new }
}

async fn count(pool: &PgPool, table: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"))).fetch_one(pool).await.unwrap()
}

#[sqlx::test]
async fn concurrent_submissions_have_a_number_and_a_row_each(pool: PgPool) {
    let store = Store::new(pool.clone());
    let accept = async || store.accept(keyed(&store, None).await).await.unwrap();
    let accepted: HashSet<_> = join_all((0..300).map(|_| accept())).await.into_iter().map(id).collect();
    assert_eq!(accepted.len(), 300);
    for table in ["submissions", "manifests", "submission_events WHERE state = 'QUEUED'"] {
        assert_eq!(count(&pool, table).await, 300, "{table}");
    }
}

/// Submissions with equal keys in any order, in two processes, so in two groups.
#[sqlx::test]
async fn concurrent_submissions_with_equal_keys_are_stored_once_per_key(pool: PgPool) {
    let replicas = [Store::new(pool.clone()), Store::new(pool.clone())];
    let accept = async |n: usize| {
        let store = &replicas[n % 2];
        let key = if n % 4 < 2 { n % 30 } else { 29 - n % 30 };
        (key, store.accept(keyed(store, Some(format!("key {key}"))).await).await.unwrap())
    };
    let mut by_key = BTreeMap::<usize, (HashSet<String>, usize)>::new();
    for (key, accepted) in join_all((0..600).map(accept)).await {
        let (ids, new) = by_key.entry(key).or_default();
        *new += usize::from(matches!(accepted, Accepted::New(_)));
        ids.insert(id(accepted));
    }
    assert!(by_key.len() == 30 && by_key.values().all(|(ids, new)| ids.len() == 1 && *new == 1), "{by_key:?}");
    assert_eq!(count(&pool, "submissions").await, 30);
}

#[sqlx::test]
async fn a_submission_that_the_database_refuses_fails_alone(pool: PgPool) {
    let store = Store::new(pool.clone());
    let accept = async |n: usize| {
        let mut new = keyed(&store, None).await;
        if n == 7 {
            new.request.app_resource = "local:///\0.jar".to_owned();
        }
        store.accept(new).await
    };
    let all = join_all((0..40).map(accept)).await;
    let failed: Vec<usize> = (0..40).filter(|n| all[*n].is_err()).collect();
    assert_eq!(failed, [7]);
    assert!(matches!(all[7], Err(Error::Statement { .. })), "{:?}", all[7]);
    assert_eq!(count(&pool, "submissions").await, 39);
}

#[sqlx::test]
async fn without_a_database_each_caller_gets_an_error(pool: PgPool) {
    let store = Store::new(pool.clone());
    let mut all = Vec::new();
    for _ in 0..20 {
        all.push(keyed(&store, None).await);
    }
    pool.close().await;
    let refused = join_all(all.into_iter().map(|new| store.accept(new))).await;
    assert!(refused.iter().all(|one| matches!(one, Err(Error::Unavailable { .. }))), "{refused:?}");
}

fn id(accepted: Accepted) -> String {
    match accepted {
        Accepted::New(Submission { id, .. })
        | Accepted::SameKey(Found { id, .. }, _)
        | Accepted::SameClientId(id)
        | Accepted::SameName(id)
        | Accepted::InDoubt(id, _) => id.to_string(),
        Accepted::Full(bound) => panic!("full: {bound:?}"),
        Accepted::Taken(new) => panic!("{} is taken", new.drawn.id),
    }
}
