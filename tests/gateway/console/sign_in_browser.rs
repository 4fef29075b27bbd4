//! Sign-in in a real browser, which adds cookies and what it says of a request's origin by itself.

use axum::{Router, response::Html, routing::get};
use serde_json::json;
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;
use tokio::net::TcpListener;

use crate::access::world::World;
use crate::console::in_browser::answer;
use crate::console::{issuer::Issuer, site::run};

#[sqlx::test]
async fn a_browser_signs_in_follows_acts_and_signs_out(pool: PgPool) {
    let (issuer, listener) = (Issuer::start().await, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let site = format!("http://{}", listener.local_addr().unwrap());
    let world = World::new(pool, &issuer.access(&format!("externalUrl: '{site}'"))).await;
    let _running = run(&world, listener);
    let id = world.submit(&issuer.token(), "red").await;
    let url = |path: &str| format!("{site}/console/{path}");
    let mut browser = Browser::without_key().await;

    browser.open(&url("submissions?state=QUEUED")).await;
    browser.click("document.querySelector('a.primary')").await;
    browser
        .until(&format!(
            "location.href === {} && document.querySelector('#rows tr')",
            json!(url("submissions?state=QUEUED"))
        ))
        .await;
    assert_eq!(browser.eval("document.querySelector('.caller').textContent").await, "alice");
    assert_eq!(browser.eval("document.cookie").await, "", "scripts don't see it");
    browser.until("document.getElementById('live').textContent === 'Live'").await;
    let second = world.submit(&issuer.token(), "red").await;
    browser.until(&format!("document.getElementById({})", json!(second))).await;

    // A page of a neighbour is of the same site, so the browser adds the cookie to its form.
    let neighbour = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = neighbour.local_addr().unwrap();
    let form =
        format!("<title>bait</title><form method=post action='{}'></form>", url(&format!("submissions/{id}/kill")));
    let bait = Router::new().route("/", get(async move || Html(form)));
    tokio::spawn(async move { axum::serve(neighbour, bait).await });
    browser.open(&format!("http://{address}/")).await;
    browser.eval("document.forms[0].submit()").await;
    browser.until("document.title !== 'bait' && document.querySelector('.problem h1')").await;
    let title = browser.eval("document.querySelector('.problem h1').textContent").await;
    assert_eq!(title, "A browser may not send this request");
    assert_eq!(world.get(&issuer.token(), &format!("/v1/submissions/{id}")).await.json()["state"], "QUEUED");

    browser.open(&url(&format!("submissions/{id}"))).await;
    browser.click("document.querySelector('button.danger')").await;
    answer(&mut browser, "Kill job?", "value=yes").await;
    browser.until("document.querySelector('#badge')?.textContent === 'KILLED'").await;

    browser.open(&url("submissions")).await;
    browser.click("document.querySelector('form.out button')").await;
    browser.until(&format!("location.href === {}", json!(url("signed-out")))).await;
    assert_eq!(issuer.with(|issued| issued.ended.len()), 1, "the issuer's session is ended, too");
    browser.open(&url("submissions")).await;
    assert_eq!(browser.eval("document.querySelector('.problem h1').textContent").await, "Sign in");
}

#[sqlx::test]
async fn an_open_page_leads_to_the_sign_in_when_its_session_ends(pool: PgPool) {
    let (issuer, listener) = (Issuer::start().await, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let site = format!("http://{}", listener.local_addr().unwrap());
    let world = World::new(pool, &issuer.access(&format!("externalUrl: '{site}'"))).await;
    let _running = run(&world, listener);
    let mut browser = Browser::without_key().await;
    browser.open(&format!("{site}/console/sign-in/")).await;
    browser.call("Page.navigate", json!({"url": format!("{site}/console/sign-in?issuer=corp&to=submissions")})).await;
    browser.until("document.getElementById('live')?.textContent === 'Live'").await;
    sqlx::query("DELETE FROM browser_sessions").execute(&world.pool).await.unwrap();
    // The page reads itself again, which it may not any more.
    world.submit(&issuer.token(), "red").await;
    browser.until("document.querySelector('.problem h1')?.textContent === 'Sign in'").await;
    browser.click("document.querySelector('a.primary')").await;
    browser.until("document.querySelectorAll('#rows tr').length === 1").await;
}
