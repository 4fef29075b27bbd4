//! What open lists ask for again after a change: one read and one rendering serve many of them.

use std::{
    io::Read,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use axum::{
    body::Body,
    http::{Request, header},
};
use flate2::read::GzDecoder;
use futures::future::join_all;
use http_body_util::BodyExt;
use sparkgate::access::Role;
use sqlx::PgPool;
use tokio::sync::Notify;
use tower::ServiceExt;

use crate::access::world::World;
use crate::console::site::{Site, TENANTS};

const ROWS: &str = "/console/submissions/rows";

/// Returns the values of an attribute that begins like this, in their order.
fn values<'a>(body: &'a str, begin: &str) -> Vec<&'a str> {
    body.split(begin).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

fn ids(body: &str) -> Vec<&str> {
    values(body, "<tr id=\"")
}

#[sqlx::test]
async fn each_caller_gets_the_rows_and_boxes_of_its_own_page(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let admin = world.key(Role::Admin, None).await;
    let submitter = world.key(Role::Submitter, Some("red")).await;
    let (red, own, blue) =
        (world.submit(&admin, "red").await, world.submit(&submitter, "red").await, world.submit(&admin, "blue").await);
    let callers = [
        (&admin, vec![&blue, &own, &red], vec![&blue, &own, &red]),
        (&submitter, vec![&own, &red], vec![&own]),
        (&world.key(Role::Viewer, Some("red")).await, vec![&own, &red], vec![]),
        (&world.key(Role::Operator, Some("red")).await, vec![&own, &red], vec![&own, &red]),
        (&world.key(Role::Viewer, Some("blue")).await, vec![&blue], vec![]),
    ];
    for query in ["", "?limit=2", "?state=QUEUED&name=", "?owner=none"] {
        // All at the same time, so that they share what can be shared.
        let asked = callers.iter().cycle().take(40).map(async |(key, seen, killed)| {
            let paths = [format!("{ROWS}{query}"), format!("/console/submissions{query}")];
            let (rows, page) = tokio::join!(world.get(key, &paths[0]), world.get(key, &paths[1]));
            assert_eq!((rows.status, page.status), (200, 200), "{rows:?}");
            assert!(
                rows.headers["content-type"].starts_with("text/html") && rows.headers["cache-control"] == "no-store"
            );
            let count = if query == "?owner=none" { 0 } else { seen.len() };
            let count = if query == "?limit=2" { count.min(2) } else { count };
            assert_eq!(ids(&rows.body), seen[..count], "{query}");
            let boxes = values(&rows.body, "type=\"checkbox\" name=\"id\" value=\"");
            let expected: Vec<_> = seen[..count].iter().filter(|id| killed.contains(id)).collect();
            assert_eq!(boxes.iter().collect::<Vec<_>>().len(), expected.len(), "{query}: {boxes:?}");
            assert!(expected.iter().all(|id| boxes.contains(&id.as_str())), "{query}: {boxes:?}");
            // The page has the same parts, and more around them.
            assert_eq!(ids(&page.body), ids(&rows.body), "{query}");
            assert_eq!(values(&page.body, "type=\"checkbox\" name=\"id\" value=\""), boxes, "{query}");
            assert!(rows.body.contains("id=\"pages\"") && !rows.body.contains("<header"), "{}", rows.body);
            assert_eq!(rows.body.contains("class=\"tenant\""), *key == &admin && count > 0, "{query}");
        });
        join_all(asked).await;
    }
    for bad in ["?cursor=x", "?limit=0"] {
        assert_eq!(world.get(&admin, &format!("{ROWS}{bad}")).await.status, 400, "{bad}");
    }
    assert_eq!(world.send(None, "GET", ROWS, None).await.status, 401);
}

#[sqlx::test]
async fn many_lists_at_the_same_time_miss_nothing_and_see_nothing_foreign(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let admin = world.key(Role::Admin, None).await;
    let keys = [world.key(Role::Viewer, Some("red")).await, world.key(Role::Viewer, Some("blue")).await];
    let known = [tokio::sync::Mutex::new(Vec::new()), tokio::sync::Mutex::new(Vec::new())];
    let tenants = ["red", "blue"];
    let (ended, read, one_read) = (AtomicBool::new(false), AtomicUsize::new(0), Notify::new());
    let submit = async {
        for round in 0..60 {
            let id = world.submit(&admin, tenants[round % 2]).await;
            known[round % 2].lock().await.push(id);
            // A list for each submission, however fast the machine submits: no list grows beyond one page.
            while read.load(SeqCst) <= round {
                one_read.notified().await;
            }
        }
        ended.store(true, SeqCst);
    };
    let lists = join_all((0..20).map(async |number| {
        while !ended.load(SeqCst) {
            let before = known[number % 2].lock().await.clone();
            let answer = world.get(&keys[number % 2], &format!("{ROWS}?limit=500")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let body = answer.body;
            let shown = ids(&body);
            // All that were accepted before it was asked, each once, and none of the other tenant.
            let missing: Vec<_> = before.iter().filter(|id| !shown.contains(&id.as_str())).collect();
            assert!(missing.is_empty(), "{missing:?} of {}", tenants[number % 2]);
            let foreign = known[1 - number % 2].lock().await.clone();
            assert!(!foreign.iter().any(|id| body.contains(id.as_str())));
            let mut once = shown.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), shown.len());
            read.fetch_add(1, SeqCst);
            one_read.notify_one();
        }
    }));
    tokio::join!(submit, lists);
}

#[sqlx::test]
async fn rows_are_compressed_for_clients_that_ask_for_it(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(40).await.remove(39);
    let request =
        Request::get(ROWS).header(header::HOST, "gateway").header(header::ACCEPT_ENCODING, "gzip, deflate, br");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {}", site.key)).body(Body::empty()).unwrap();
    let response = site.world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
    assert_eq!(response.headers()[header::VARY], "accept-encoding");
    let compressed = response.into_body().collect().await.unwrap().to_bytes();
    let mut text = String::new();
    GzDecoder::new(&compressed[..]).read_to_string(&mut text).unwrap();
    assert!(compressed.len() < text.len() / 4 && text.starts_with("<!DOCTYPE html>"), "{}", compressed.len());
    assert!(ids(&text).len() == 40 && ids(&text)[0] == id && text.ends_with("</html>"));
    let plain = site.page(ROWS).await;
    assert!(!plain.headers.contains_key("content-encoding") && ids(&plain.body) == ids(&text));
}
