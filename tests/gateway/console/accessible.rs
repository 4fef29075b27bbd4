//! Pages for people who use a keyboard, a screen reader or a phone, and on slow networks.

use serde_json::{Value, json};
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;

use crate::console::site::{Site, pages_of};

/// The most bytes of a first page with all that it loads, before compression.
const FIRST: u64 = 100 << 10;

/// A phone and a desk, in light and dark colours.
const LOOKS: [(u32, &str); 4] = [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")];

#[sqlx::test]
async fn axe_finds_no_violation_on_any_page(pool: PgPool) {
    let site = Site::start(pool).await;
    let ids = site.submit(3).await;
    let failed = "state = 'FAILED', exit_code = 1, reason = 'Error', message = 'it failed', pod_uid = 'uid', \
                  started_at = created_at, finished_at = clock_timestamp()";
    site.set(&ids[0], failed).await;
    let mut pages: Vec<String> = [
        "submissions",
        "submissions?state=LOST",
        "queues",
        "overview",
        "jobs",
        "jobs/orders-nightly",
        "sessions",
        "operator",
        "signed-out",
        "submissions/driver-1",
    ]
    .map(|page| format!("/console/{page}"))
    .into();
    site.let_run(&ids[2]).await;
    pages.extend(ids.iter().flat_map(|id| pages_of(id)));
    // In the place of a Spark UI: of a submission that there isn't, and of a ticket that is none.
    pages.extend(["/v1/submissions/driver-1/ui/".to_owned(), format!("/v1/ui/{}/r1-ab/", ids[0])]);
    pages.push(format!("/console/submissions/{}/configuration?with={}", ids[0], ids[1]));
    assert_accessible(&site, &pages).await;
}

/// Asserts that axe finds no violation on these pages, in each of the [`LOOKS`].
pub(crate) async fn assert_accessible(site: &Site, pages: &[String]) {
    let axe = std::env::var("SPARKGATE_AXE").expect("SPARKGATE_AXE is not set: run `make test`, or scripts/axe");
    let axe = std::fs::read_to_string(axe).unwrap();
    let mut browser = Browser::start(&site.key).await;
    // Only for axe itself, which adds elements of its own.
    let mut violations = Vec::new();
    browser.call("Page.setBypassCSP", json!({"enabled": true})).await;
    for page in pages {
        browser.open(&site.url(page)).await;
        browser.eval(&format!("{axe}; undefined")).await;
        for (width, scheme) in LOOKS {
            browser.set_appearance(width, scheme).await;
            let run = "axe.run().then((found) => found.violations.map((one) => [one.id, one.help, one.nodes.map((node) => node.html)]))";
            let found = browser.eval(run).await;
            violations.extend((found != json!([])).then(|| format!("{page} in {width} {scheme}: {found}")));
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[sqlx::test]
async fn a_first_page_is_small_and_later_ones_load_nothing_but_themselves(pool: PgPool) {
    let site = Site::start(pool).await;
    site.submit(50).await;
    let mut browser = Browser::start(&site.key).await;
    browser.open(&site.url("/console/submissions")).await;
    browser.until("document.getElementById('live').textContent === 'Live'").await;
    // Rows that are read again after a change aren't what the page needs.
    // What the page needs besides itself, in how many bytes before and after compression, and how much of it before it is shown.
    let loaded = "performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource')) \
                  .filter((one) => !one.name.includes('/v1/events') && !one.name.includes('/rows')) \
                  .map((one) => ({name: one.name.split('/').pop(), size: one.decodedBodySize, sent: one.transferSize, \
                                  blocks: one.renderBlockingStatus === 'blocking'}))";
    let first = browser.eval(loaded).await;
    let sum = |entries: &Value, name: &str| -> u64 {
        entries.as_array().unwrap().iter().map(|entry| entry[name].as_u64().unwrap()).sum()
    };
    eprintln!("a list of 50 submissions: {} bytes, {} sent: {first:#}", sum(&first, "size"), sum(&first, "sent"));
    assert!(sum(&first, "size") < FIRST, "{first:#}");
    let blocking: Vec<_> = first.as_array().unwrap().iter().filter(|entry| entry["blocks"] == true).collect();
    assert_eq!(blocking.len(), 1, "only the style sheet delays the first paint: {first:#}");
    browser.open(&site.url("/console/overview")).await;
    let later = browser.eval(loaded).await;
    let requests = later.as_array().unwrap().iter().filter(|entry| entry["sent"].as_u64().unwrap() > 0).count();
    assert_eq!(requests, 1, "the rest is in the browser's cache: {later:#}");
}
