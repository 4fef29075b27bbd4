//! Reads of one submission, which share a statement.

use futures::future::join_all;
use sparkgate::{
    store::{Error, NewSubmission, Price, Prices, Scope, Scoped, Store, SubmissionDocument},
    submission::{State, SubmissionId},
};
use sqlx::PgPool;

use crate::support::{accept, draw, new};

#[sqlx::test]
async fn reads_that_share_a_statement_get_what_each_of_them_may_see(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (plain, unreadable) = (accept(&store, "a").await, accept(&store, "b").await);
    let foreign = accept_of_red(&store, "c").await;
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

#[sqlx::test]
async fn documents_that_share_a_statement_are_those_of_each_caller(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (plain, broken) = (accept(&store, "a").await, accept(&store, "b").await);
    let foreign = accept_of_red(&store, "c").await;
    // An hour of a core.
    let run = "UPDATE submissions SET pod_uid = 'a', pod_millicores = 1000, created_at = now() - interval '2 h',
                   started_at = now() - interval '1 h', finished_at = now()";
    sqlx::query(run).execute(&pool).await.unwrap();
    let unknown = "driver-20200101000000-0000".parse().unwrap();
    let price = Price { core_hour: "3".to_owned(), gib_hour: "0".to_owned() };
    let priced = Prices { other: Some(price), ..Prices::default() };
    let (all, red) = (store.all(), store.scoped(&Scope::of(vec!["red".to_owned()], vec![], "")));
    let callers = [(&all, Prices::default()), (&all, priced), (&red, Prices::default())];
    // Many more than there are statements at a time.
    let read_by_all = async |ids: &[&SubmissionId]| {
        let read = |of: &Scoped, prices: &Prices, id: &SubmissionId| {
            let (of, prices, id) = (of.clone(), prices.clone(), id.clone());
            async move { described(of.document(&id, prices).await) }
        };
        let round = || callers.iter().flat_map(|(of, prices)| ids.iter().map(move |id| read(of, prices, id)));
        join_all((0..20).flat_map(|_| round())).await
    };
    let of = |id: &SubmissionId, cost: Option<&str>| Ok((id.clone(), cost.map(str::to_owned)));
    let none = || Err("none");

    let expected = [
        [of(&plain, None), of(&foreign, None), none()],
        [of(&plain, Some("3")), of(&foreign, Some("3")), none()],
        [none(), of(&foreign, None), none()],
    ];
    let read = read_by_all(&[&plain, &foreign, &unknown]).await;
    assert!(read.chunks(9).all(|round| round == expected.concat()), "{read:?}");

    // Fails the statement of a group, or the decoding of the row, as Postgres can subtract it or not.
    let endless = "UPDATE submissions SET finished_at = 'infinity' WHERE id = $1";
    sqlx::query(endless).bind(broken.as_str()).execute(&pool).await.unwrap();
    let expected = [[of(&plain, None), Err("unreadable")], [of(&plain, Some("3")), Err("unreadable")]];
    let read = read_by_all(&[&plain, &broken]).await;
    assert!(read.chunks(6).all(|round| round[..4] == expected.concat()), "{read:?}");
}

async fn accept_of_red(store: &Store, pod: &str) -> SubmissionId {
    let drawn = draw(store).await;
    let id = drawn.id.clone();
    store.accept(NewSubmission { tenant: "red".to_owned(), ..new(drawn, pod) }).await.unwrap();
    id
}

fn described(read: Result<Option<SubmissionDocument>, Error>) -> Result<(SubmissionId, Option<String>), &'static str> {
    match read {
        Ok(read) => read.map(|read| (read.submission.id, read.usage.unwrap().total.cost)).ok_or("none"),
        Err(Error::Row { .. } | Error::Statement { .. }) => Err("unreadable"),
        Err(error) => panic!("{error}"),
    }
}
