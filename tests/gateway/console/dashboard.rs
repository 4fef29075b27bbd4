//! The dashboard of the docs, on a page of another origin in a real Chromium.

use axum::{Router, response::Html, routing::get};
use sparkgate::{
    access::Role,
    api::{BrowserSettings, HttpSettings, router},
};
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;
use tokio::net::TcpListener;

use crate::console::site::{Site, run};

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/use/dashboard.html"));
const ROWS: &str = "[...document.querySelectorAll('#rows tr')].map((tr) => `${tr.cells[0].textContent} ${tr.cells[1].textContent}`).join()";

/// The page's table of queries: the URL and the name of the rows in the answer.
fn queries() -> Vec<(String, String)> {
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/use/dashboards.md"));
    let rows = page.lines().filter(|line| line.contains("| `/v1/"));
    rows.map(|line| {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let url = cells[2].replace("${__from:date:iso}", "2026-01-02T03:04:05Z");
        (url.replace("${__from:date:YYYY-MM-DD}", "2026-01-02"), cells[3].to_owned())
    })
    .collect()
}

#[sqlx::test]
async fn the_queries_of_a_grafana_table_have_rows(pool: PgPool) {
    let site = Site::start(pool).await;
    site.submit(1).await;
    let queries = queries();
    assert!(queries.len() > 4, "{queries:?}");
    for (url, rows) in queries {
        let answer = site.world.get(&site.key, &url).await;
        assert!(answer.status == 200 && answer.json()[&rows].is_array(), "{url}: {answer:?}");
    }
}

#[sqlx::test]
async fn the_dashboard_lists_filters_and_follows_from_another_origin(pool: PgPool) {
    let mut site = Site::start(pool).await;
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", elsewhere.local_addr().unwrap());
    tokio::spawn(async { axum::serve(elsewhere, Router::new().route("/", get(async || Html(PAGE)))).await });
    let browser = BrowserSettings { origins: vec![origin.clone()], ..BrowserSettings::default() };
    let settings = HttpSettings { browser, ..HttpSettings::default() };
    site.world.router = router(site.world.service.clone(), settings).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let _running = run(&site.world, listener);
    let viewer = site.world.key(Role::Viewer, Some("red")).await;

    let ids = site.submit(2).await;
    site.set(&ids[0], "name = 'etl-<b>'").await;
    let mut browser = Browser::without_key().await;
    browser.open(&format!("{origin}/")).await;
    browser
        .eval(&format!(
            "gateway.url.value = 'http://{address}'; gateway.key.value = '{viewer}'; gateway.requestSubmit()"
        ))
        .await;
    browser.until(&format!("{ROWS} === 'QUEUED job,QUEUED etl-<b>'")).await;
    browser.until("document.getElementById('status').textContent === 'Live'").await;
    site.world.send(Some(&site.key), "DELETE", &format!("/v1/submissions/{}", ids[0]), None).await;
    browser.until(&format!("{ROWS}.endsWith('KILLED etl-<b>')")).await;
    browser.eval("filters.nameContains.value = 'ETL'; filters.requestSubmit()").await;
    browser.until(&format!("{ROWS} === 'KILLED etl-<b>'")).await;
    assert_eq!(browser.faults().await, [""; 0]);
    browser.eval("gateway.key.value = 'wrong'; gateway.requestSubmit()").await;
    // The gateway's own words: also a refusal may be read from this origin.
    let status = "document.getElementById('status').textContent";
    browser.until(&format!("!/^(Live|Connecting)$/.test({status})")).await;
    let refused = browser.eval(status).await;
    assert!(!refused.as_str().unwrap().contains("fetch"), "{refused}");
}
