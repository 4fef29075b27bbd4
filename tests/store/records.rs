//! Reads of one submission, which share a statement.

use futures::future::join_all;
use sparkgate::{
    store::{Error, NewSubmission, Scope, Store},
    submission::State,
};
use sqlx::PgPool;

use crate::support::{accept, draw, new};

#[sqlx::test]
async fn reads_that_share_a_statement_get_what_each_of_them_may_see(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (plain, unreadable) = (accept(&store, "a").await, accept(&store, "b").await);
    let drawn = draw(&store).await;
    let foreign = drawn.id.clone();
    store.accept(NewSubmission { tenant: "red".to_owned(), ..new(drawn, "c") }).await.unwrap();
    // A later release may know more states.
    sqlx::raw_sql("ALTER TABLE submissions DROP CONSTRAINT submissions_state").execute(&pool).await.unwrap();
    let later = "UPDATE submissions SET state = 'UNHEARD_OF' WHERE id = $1";
    sqlx::query(later).bind(unreadable.as_str()).execute(&pool).await.unwrap();
    let unknown = "driver-20200101000000-0000".parse().unwrap();

    let scopes = [Scope::installation(), Scope::of(vec!["red".to_owned()], vec![], ""), Scope::of(vec![], vec![], "")];
    let readers = scopes.map(|scope| store.scoped(&scope));
    // Many more than there are statements at a time.
    let rounds = (0..40).flat_map(|_| {
        readers.iter().flat_map(|reader| [&plain, &foreign, &unreadable, &unknown].map(|id| reader.find(id)))
    });
    let found = join_all(rounds).await;
    let described: Vec<_> = found
        .into_iter()
        .map(|found| match found {
            Ok(found) => found.map(|record| (record.id, record.state)).ok_or("none"),
            Err(Error::Row { .. }) => Err("unreadable"),
            Err(error) => panic!("{error}"),
        })
        .collect();
    let of = |id: &_| Ok((Clone::clone(id), State::Queued));
    let none = || Err("none");
    let expected = [
        [of(&plain), of(&foreign), Err("unreadable"), none()],
        [none(), of(&foreign), none(), none()],
        [none(), none(), none(), none()],
    ];
    assert!(described.chunks(12).all(|round| round == expected.concat()), "{described:?}");
    assert_eq!(described.len(), 40 * 12);
}
