//! The console in a real browser.

use serde_json::json;
use sparkgate::store::{LogEnd, Store};
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;

use crate::console::site::{Site, pages_of};

const IDS: &str = "[...document.querySelectorAll('#rows tr')].map((row) => row.id)";

async fn both(pool: PgPool) -> (Site, Browser) {
    let site = Site::start(pool).await;
    let browser = Browser::start(&site.key).await;
    (site, browser)
}

#[sqlx::test]
async fn every_page_opens_without_a_fault_in_every_look(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let ids = site.submit(3).await;
    site.let_run(&ids[2]).await;
    let failed = "state = 'FAILED', exit_code = 1, reason = 'Error', message = 'it failed', pod_uid = 'uid', \
                  started_at = created_at, finished_at = clock_timestamp()";
    site.set(&ids[0], failed).await;
    let mut pages: Vec<String> =
        ["submissions", "submissions?state=FAILED", "queues", "sessions", "jobs", "overview?period=30d", "operator"]
            .map(|page| format!("/console/{page}"))
            .into();
    pages.extend(ids.iter().flat_map(|id| pages_of(id)));
    pages.push(format!("/console/submissions/{}/configuration?with={}", ids[0], ids[1]));
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (768, "light"), (390, "light"), (390, "dark")] {
        browser.set_appearance(width, scheme).await;
        for page in &pages {
            browser.open(&site.url(page)).await;
            let beyond = browser.eval("document.documentElement.scrollWidth - innerWidth").await;
            assert!(beyond.as_i64().unwrap() <= 0, "{page} is {beyond} too wide for {width}");
            let faults = browser.faults().await;
            // There is no log of a submission without a pod: the request for it is answered with 404.
            let faults: Vec<_> =
                faults.iter().filter(|fault| !(fault.contains("/logs?") && fault.contains("404"))).collect();
            assert!(faults.is_empty(), "{page}: {faults:?}");
        }
        let ground = browser.eval("getComputedStyle(document.documentElement).backgroundColor").await;
        assert_eq!(ground, if scheme == "dark" { "rgb(17, 18, 20)" } else { "rgb(255, 255, 255)" });
    }
}

#[sqlx::test]
async fn the_list_is_live_with_each_submission_once(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let mut ids = site.submit(3).await;
    browser.open(&site.url("/console/submissions")).await;
    browser.until("document.getElementById('live').textContent === 'Live'").await;
    browser.eval("window.same = true").await;
    ids.extend(site.submit(3).await);
    ids.reverse();
    browser.until(&format!("{IDS}.length === 6")).await;
    assert_eq!(browser.eval(IDS).await, json!(ids));
    let killed = site.world.send(Some(&site.key), "DELETE", &format!("/v1/submissions/{}", ids[1]), None).await;
    assert_eq!(killed.status, 202);
    browser.until(&format!("document.querySelector('#{} .state').textContent === 'KILLED'", ids[1])).await;
    // The tab was hidden while things happened, as behind another one.
    let hidden = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => window.away}); \
                  window.away = true; document.dispatchEvent(new Event('visibilitychange'))";
    browser.eval(hidden).await;
    let more = site.submit(2).await;
    ids.splice(0..0, more.into_iter().rev());
    browser.eval("window.away = false; document.dispatchEvent(new Event('visibilitychange'))").await;
    browser.until(&format!("{IDS}.length === 8")).await;
    assert_eq!(browser.eval(IDS).await, json!(ids));
    assert_eq!(browser.eval("window.same").await, true, "the page was never loaded again");
    assert_eq!(browser.faults().await, [""; 0]);
}

#[sqlx::test]
async fn the_list_goes_on_through_a_restart_of_the_gateway(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let mut ids = site.submit(2).await;
    browser.open(&site.url("/console/submissions")).await;
    browser.until("document.getElementById('live').textContent === 'Live'").await;
    browser.eval("window.same = true").await;
    // As by another replica.
    let (site, more) = site.restart(async |site| site.submit(2).await).await;
    ids.extend(more);
    browser.until(&format!("{IDS}.length === 4")).await;
    ids.extend(site.submit(1).await);
    ids.reverse();
    browser.until(&format!("{IDS}.length === 5 && document.getElementById('live').textContent === 'Live'")).await;
    assert_eq!(browser.eval(IDS).await, json!(ids));
    assert_eq!(browser.eval("window.same").await, true, "the page was never loaded again");
}

#[sqlx::test]
async fn the_list_catches_up_after_a_sleep(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let mut ids = site.submit(2).await;
    browser.open(&site.url("/console/submissions")).await;
    browser.until("document.getElementById('live').textContent === 'Live'").await;
    browser.eval("window.same = true").await;
    let network =
        |offline: bool| json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
    browser.call("Network.emulateNetworkConditions", network(true)).await;
    ids.extend(site.submit(2).await);
    let killed = site.world.send(Some(&site.key), "DELETE", &format!("/v1/submissions/{}", ids[0]), None).await;
    assert_eq!(killed.status, 202);
    // The clock went on while timers stood still.
    browser.eval("window.clock = Date.now; Date.now = () => window.clock() + 60_000; undefined").await;
    browser.call("Network.emulateNetworkConditions", network(false)).await;
    browser.until(&format!("{IDS}.length === 4")).await;
    browser.until(&format!("document.querySelector('#{} .state').textContent === 'KILLED'", ids[0])).await;
    ids.extend(site.submit(2).await);
    ids.reverse();
    browser.until(&format!("{IDS}.length === 6 && document.getElementById('live').textContent === 'Live'")).await;
    assert_eq!(browser.eval(IDS).await, json!(ids));
    assert_eq!(browser.eval("window.same").await, true, "the page was never loaded again");
}

#[sqlx::test]
async fn a_hundred_thousand_submissions_are_opened_paged_filtered_and_followed(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    site.submit(1).await;
    let copies = "INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user, created_at,
            queued_at, name, owner, labels, fingerprint, tenant, principal, finished_at, exit_code, pod_deleted_at)
        SELECT 'driver-20200101000000-' || n, 1000 + n, 'FINISHED', request, spark_version, namespace,
            names || jsonb_build_object('driverPod', 'pod-' || n), spark_user, now() - (100001 - n) * interval '1 second', now(),
            'orders-' || n, owner, labels, decode(md5(n::text), 'hex'), tenant, principal, now(), 0, now()
        FROM submissions, generate_series(1, 100000) AS n";
    sqlx::query(copies).execute(&site.world.pool).await.unwrap();
    for statement in ["SELECT setval('submission_number', 200000)", "ANALYZE submissions"] {
        sqlx::query(statement).execute(&site.world.pool).await.unwrap();
    }
    browser.open(&site.url("/console/submissions")).await;
    let shown =
        |newest: usize| (newest - 49..=newest).rev().map(|n| format!("driver-20200101000000-{n}")).collect::<Vec<_>>();
    assert_eq!(browser.eval(IDS).await, json!(shown(100_000)));
    for newest in [99_950, 99_900] {
        browser.click("document.querySelector('a[rel=next]')").await;
        let is_loaded = "document.readyState === 'complete'";
        browser.until(&format!("{IDS}[0] === 'driver-20200101000000-{newest}' && {is_loaded}")).await;
        assert_eq!(browser.eval(IDS).await, json!(shown(newest)));
    }
    browser.open(&site.url("/console/submissions?name=orders-1234")).await;
    assert_eq!(browser.eval(&format!("{IDS}.length")).await, 11, "one, and ten with another digit");
    browser.open(&site.url("/console/submissions")).await;
    browser.until("document.getElementById('live').textContent === 'Live'").await;
    let new = site.submit(1).await.remove(0);
    browser.until(&format!("{IDS}[0] === '{new}'")).await;
    let expected: Vec<String> = [new].into_iter().chain(shown(100_000)).take(50).collect();
    assert_eq!(browser.eval(IDS).await, json!(expected));
    assert_eq!(browser.faults().await, [""; 0]);
}

#[sqlx::test]
async fn the_list_goes_on_after_its_events_are_gone(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let ids = site.submit(3).await;
    browser.open(&site.url("/console/submissions")).await;
    browser.until("document.getElementById('live').textContent === 'Live'").await;
    browser.eval("Object.defineProperty(document, 'hidden', {configurable: true, get: () => true}); document.dispatchEvent(new Event('visibilitychange'))").await;
    // The machine slept so long that the records of that time are deleted.
    sqlx::query("DELETE FROM submissions WHERE id = $1").bind(&ids[1]).execute(&site.world.pool).await.unwrap();
    let new = site.submit(1).await.remove(0);
    browser.eval("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))").await;
    browser.until(&format!("{IDS}[0] === '{new}'")).await;
    assert_eq!(browser.eval(IDS).await, json!([new, ids[2], ids[0]]));
    let last = site.submit(1).await.remove(0);
    browser.until(&format!("{IDS}[0] === '{last}'")).await;
}

#[sqlx::test]
async fn the_keyboard_opens_goes_back_filters_and_kills(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let ids = site.submit(3).await;
    site.set(&ids[2], "name = 'etl-nightly'").await;
    let list = site.url("/console/submissions");
    browser.open(&list).await;
    for key in ["j", "j", "j", "k", "Enter"] {
        browser.press(key).await;
    }
    browser
        .until(&format!(
            "location.pathname === '/console/submissions/{}' && document.readyState === 'complete'",
            ids[1]
        ))
        .await;
    browser.eval("history.back()").await;
    browser.until(&format!("location.href === '{list}' && {IDS}.length === 3")).await;
    browser.press("?").await;
    browser.until("document.querySelector('dialog').open").await;
    browser.eval("document.querySelector('dialog').close()").await;
    browser.press("/").await;
    browser.until("document.activeElement.name === 'nameContains'").await;
    browser.call("Input.insertText", json!({"text": "etl"})).await;
    browser.press("Enter").await;
    browser.until("location.search.startsWith('?nameContains=etl')").await;
    browser.until(&format!("{IDS}.join() === '{}'", ids[2])).await;
    browser.eval("history.back()").await;
    browser.until(&format!("location.search === '' && {IDS}.length === 3 && document.readyState === 'complete'")).await;
    // The browser may have kept the page with its cursor in the filter.
    for key in ["Escape", "j", "x", "j", "x"] {
        browser.press(key).await;
    }
    browser.until("document.querySelector('[data-selection]').textContent === '2 selected'").await;
    // What others do meanwhile doesn't change the selection.
    let other = site.submit(1).await.remove(0);
    browser
        .until(&format!("{IDS}[0] === '{other}' && document.querySelectorAll('#rows input:checked').length === 2"))
        .await;
    browser.click("document.querySelector('[data-needs-selection]')").await;
    answer(&mut browser, "Kill 2 submissions?", "value=yes").await;
    browser.until("document.querySelector('h1')?.textContent === 'Kill requested for 2 of 2'").await;
    browser.open(&site.url(&format!("/console/submissions/{}", ids[0]))).await;
    let kill = "document.querySelector('#actions button.danger').click()";
    browser.eval(kill).await;
    answer(&mut browser, "Kill job?", "autofocus").await;
    assert_eq!(browser.eval("document.querySelector('#badge').textContent").await, "QUEUED", "it was cancelled");
    browser.eval(kill).await;
    // The form is another one after the page was exchanged.
    browser.eval("document.getElementById('actions').replaceChildren(document.getElementById('actions').firstElementChild.cloneNode(true), ...[...document.getElementById('actions').children].slice(1).map((one) => one.cloneNode(true)))").await;
    let details = browser.eval("document.querySelector('#question p').textContent").await;
    assert!(details.as_str().is_some_and(|text| text.contains("QUEUED") && text.contains(&ids[0])), "{details}");
    answer(&mut browser, "Kill job?", "value=yes").await;
    browser.until("document.querySelector('#badge')?.textContent === 'KILLED'").await;
    assert_eq!(browser.faults().await, [""; 0]);
}

/// Presses a button of the dialog that asks before something ends: `value=yes`, or that with the focus, which cancels.
pub(super) async fn answer(browser: &mut Browser, question: &str, button: &str) {
    browser.until("document.getElementById('question').open").await;
    assert_eq!(browser.eval("document.querySelector('#question h2').textContent").await, question);
    browser.click(&format!("document.querySelector('#question button[{button}]')")).await;
    browser.until("!document.getElementById('question').open").await;
}

#[sqlx::test]
async fn moments_are_local_with_utc_beside_them(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let id = site.submit(1).await.remove(0);
    site.set(&id, "created_at = '2026-01-02T23:30:00Z'").await;
    browser.call("Emulation.setTimezoneOverride", json!({"timezoneId": "Asia/Kolkata"})).await;
    browser.open(&site.url(&format!("/console/submissions/{id}"))).await;
    let moment = "document.querySelector('time[data-moment][datetime^=\"2026-01-02T23:30\"]')";
    browser.until(&format!("{moment}?.textContent === '2026-01-03 05:00:00 2026-01-02 23:30:00 UTC'")).await;
    assert_eq!(browser.faults().await, [""; 0]);
}

#[sqlx::test]
async fn a_submission_is_live_until_its_end(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let id = site.submit(1).await.remove(0);
    browser.open(&site.url(&format!("/console/submissions/{id}"))).await;
    browser.until("document.getElementById('live').textContent === 'Live'").await;
    site.world.send(Some(&site.key), "DELETE", &format!("/v1/submissions/{id}"), None).await;
    browser.until("document.querySelector('#badge').textContent === 'KILLED' && document.querySelector('.why').textContent.includes('KILLED_ON_REQUEST')").await;
    browser
        .until("document.getElementById('live').textContent === 'Ended' && !document.querySelector('button.danger')")
        .await;
    assert_eq!(browser.faults().await, [""; 0]);
}

#[sqlx::test]
async fn a_log_is_followed_to_its_end_coloured_and_searched(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let id = site.submit(1).await.remove(0);
    site.set(&id, "state = 'FINISHED', exit_code = 0, pod_uid = 'uid', finished_at = clock_timestamp()").await;
    let line = |number: usize| {
        format!("2026-01-02T03:04:05.000000000Z \u{1b}[31m{number}\u{1b}[0m {}\n", "word ".repeat(number % 60))
    };
    let log = LogEnd { text: (0..1500).map(line).collect::<String>().into_bytes(), cut: false };
    Store::new(site.world.pool.clone()).keep_log(&id.parse().unwrap(), 1, Some(log), &[]).await.unwrap();
    browser.open(&site.url(&format!("/console/submissions/{id}/logs"))).await;
    browser.until("document.querySelectorAll('#log .line').length === 1500").await;
    let is_at_end = "log.scrollHeight - log.scrollTop - log.clientHeight < 40 && document.querySelector('[data-option=follow] input').checked";
    browser.until(is_at_end).await;
    assert_eq!(browser.eval("document.querySelector('#log .line:nth-child(8) .c1').textContent").await, "7");
    let all = "fetch(document.querySelector('a[download]').href).then((answer) => answer.text()).then((text) => text.split('\\n').length)";
    assert_eq!(browser.eval(all).await, 1501, "the download has all of it");
    browser.press("/").await;
    browser.call("Input.insertText", json!({"text": "1499 "})).await;
    browser.until("document.querySelector('[data-found]').textContent === 'lines: 1'").await;
    assert_eq!(browser.faults().await, [""; 0]);
}

#[sqlx::test]
async fn commands_are_copied_as_they_are_shown(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let id = site.submit(1).await.remove(0);
    browser.open(&site.url(&format!("/console/submissions/{id}"))).await;
    browser.eval("navigator.clipboard.writeText = async (text) => { window.copied = text; }; undefined").await;
    for (name, words) in [
        ("sparkgate rerun", "sparkgate rerun driver-"),
        ("sparkgate submit", "sparkgate submit --request - <<'REQUEST'"),
        ("curl", "curl -sS \"$SPARKGATE_URL/v1/submissions\""),
        ("Airflow", "SparkgateSubmitOperator("),
    ] {
        let command = format!(
            "[...document.querySelectorAll('details.command')].find((one) => one.querySelector('summary').textContent === '{name}')"
        );
        browser.eval(&format!("{command}.open = true; {command}.querySelector('[data-copy]').click()")).await;
        browser.until(&format!("window.copied === {command}.querySelector('pre').textContent")).await;
        let copied = browser.eval("window.copied").await;
        assert!(copied.as_str().unwrap().contains(words), "{name}: {copied}");
    }
    browser.click("document.querySelector('p.id [data-copy]')").await;
    browser.until(&format!("window.copied === '{id}'")).await;
    assert_eq!(browser.faults().await, [""; 0]);
}

#[sqlx::test]
async fn pages_work_behind_a_prefix(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let ids = site.submit(2).await;
    let prefix = site.url("/behind/a/proxy/console");
    for page in ["/submissions".to_owned(), format!("/submissions/{}", ids[0]), "/overview".to_owned()] {
        browser.open(&format!("{prefix}{page}")).await;
        browser.until("document.getElementById('live').textContent === 'Live'").await;
    }
    browser.open(&format!("{prefix}/submissions")).await;
    browser.click(&format!("document.querySelector('#{} a')", ids[1])).await;
    browser
        .until(&format!("location.href === '{prefix}/submissions/{}' && document.readyState === 'complete'", ids[1]))
        .await;
    browser.click("document.querySelector('button.danger')").await;
    answer(&mut browser, "Kill job?", "value=yes").await;
    browser
        .until(&format!(
            "location.href === '{prefix}/submissions/{}' && document.querySelector('#badge')?.textContent === 'KILLED'",
            ids[1]
        ))
        .await;
    // The two redirects to the list.
    for short in [prefix.clone(), format!("{prefix}/")] {
        browser.call("Page.navigate", json!({"url": short})).await;
        browser.until(&format!("location.href === '{prefix}/submissions' && {IDS}.length === 2")).await;
    }
    assert_eq!(browser.faults().await, [""; 0]);
}

#[sqlx::test]
async fn pages_read_and_kill_without_scripts(pool: PgPool) {
    let (site, mut browser) = both(pool).await;
    let ids = site.submit(2).await;
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    let list = site.url("/console/submissions");
    browser.open(&list).await;
    assert_eq!(browser.eval(&format!("{IDS}.length")).await, 2);
    assert_eq!(
        browser
            .eval("document.getElementById('live').textContent + document.querySelector('[data-help]').hidden")
            .await,
        "true"
    );
    browser.click(&format!("document.querySelector('#{} a')", ids[0])).await;
    browser.until("document.querySelector('button.danger')").await;
    assert!(browser.eval("document.body.innerText").await.as_str().unwrap().contains("It waits to be launched"));
    browser.click("document.querySelector('button.danger')").await;
    browser.until("document.querySelector('#badge')?.textContent === 'KILLED'").await;
    for page in pages_of(&ids[0]).iter().map(String::as_str).chain(["/console/overview", "/console/operator"]) {
        browser.open(&site.url(page)).await;
        assert!(
            browser.eval("document.querySelector('main').innerText.length > 100").await.as_bool().unwrap(),
            "{page}"
        );
    }
}
