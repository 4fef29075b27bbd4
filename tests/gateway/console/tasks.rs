//! The tasks of a morning, by clicks alone: how many each takes in a real Chromium.

use std::time::Instant;

use sparkgate_testing::browser::Browser;
use sqlx::PgPool;

use crate::console::pictures::played;

/// A task: the page where it begins, what is clicked, and what is then true.
type Task<'a> = (&'a str, String, &'a [&'a str], &'a str);

/// The first link or button with this text.
fn named(text: &str) -> String {
    format!(
        "[...(document.querySelector('dialog[open]') ?? document).querySelectorAll('nav a, main a, button')].find((one) => one.textContent.trim().startsWith({text:?}) && one.checkVisibility())"
    )
}

#[sqlx::test]
async fn what_a_user_wants_to_know_in_the_morning_is_two_clicks_away(pool: PgPool) {
    let (site, ids) = played(pool).await;
    let failed = format!("/console/submissions/{}", ids[11]);
    let (list, failed_page) = ("/console/submissions".to_owned(), failed.clone());
    let tasks: [Task<'_>; 10] = [
        (
            "which runs failed, and why",
            list.clone(),
            &["Failed"],
            "document.querySelector('#rows .cause')?.textContent.includes('UNRESOLVED_COLUMN')",
        ),
        (
            "whose runs they are",
            list.clone(),
            &["Failed"],
            "[...document.querySelectorAll('#rows .who')].some((cell) => cell.textContent.includes('ada'))",
        ),
        (
            "the exception in full",
            list.clone(),
            &["Failed", "orders-nightly"],
            "document.querySelector('h2.message')?.textContent.includes('price_eur')",
        ),
        (
            "what the application itself wrote",
            failed_page.clone(),
            &["All its output"],
            "document.getElementById('log')?.textContent.includes('orders: 1204339')",
        ),
        (
            "what has changed since the job last worked",
            list.clone(),
            &["Jobs", "orders-nightly"],
            "/changed since/i.test(document.querySelector('main').textContent)",
        ),
        (
            "whether it fails often, and when it runs next",
            list.clone(),
            &["Jobs", "orders-nightly"],
            "/succeeded/i.test(document.querySelector('main').textContent)",
        ),
        (
            "all runs that failed in this way today",
            list.clone(),
            &["Overview", "OUT_OF_MEMORY"],
            "[...document.querySelectorAll('#rows tr')].length === 1 && document.querySelector('#rows').textContent.includes('train-ranking')",
        ),
        (
            "whose runs fail most",
            list.clone(),
            &["Overview"],
            "/Top users/.test(document.querySelector('main').textContent)",
        ),
        (
            "run it again with more memory",
            failed_page,
            &["Run again"],
            "document.querySelector('[name=\"spark.driver.memory\"]')",
        ),
        (
            "end what still runs",
            list,
            &["Running", "clicks-stream", "Kill", "Kill"],
            "document.querySelector('#badge')?.textContent.startsWith('KILL')",
        ),
    ];
    let mut browser = Browser::start(&site.key).await;
    for (task, from, clicks, then) in tasks {
        browser.open(&site.url(&from)).await;
        let begun = Instant::now();
        for text in clicks {
            browser.click(&named(text)).await;
        }
        browser.until(then).await;
        eprintln!("{task}: {} clicks, {:.1} s", clicks.len(), begun.elapsed().as_secs_f64());
    }
    assert_eq!(browser.faults().await, [""; 0]);
}
