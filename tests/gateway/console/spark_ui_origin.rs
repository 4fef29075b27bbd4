//! Spark UIs on a host of their own, and the pages that people see in the place of one.

use axum::{
    body::Body,
    http::{Request, header},
};
use serde_json::json;
use sparkgate::{
    access::Role,
    server::{ServerSettings, serve},
    service::SparkUiSettings,
};
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::access::world::World;
use crate::console::{
    issuer::Issuer,
    site::{Site, TENANTS},
    spark_ui::{run, set, with_driver},
};
use crate::in_memory::Answer;

/// Gives UIs an origin, and listens on another port, which is returned.
async fn with_origin(site: &mut Site, origin: impl Fn(u16) -> String) -> (u16, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let origin = Some(origin(port).parse().unwrap());
    set(site, SparkUiSettings { origin, ..SparkUiSettings::default() }).await;
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, site.world.router.clone(), ServerSettings::default(), stop.clone()));
    (port, stop.drop_guard())
}

/// Sends a request without credentials to a host.
async fn ask(site: &Site, method: &str, host: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = Request::builder().method(method).uri(path).header(header::HOST, host);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    site.world.answer(request.body(Body::empty()).unwrap()).await
}

/// Returns the URL to which the gateway sends a caller that opens a UI.
async fn url_of(site: &Site, id: &str) -> String {
    let answer = site.world.get(&site.key, &format!("/v1/submissions/{id}/ui")).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.headers["location"].clone()
}

#[sqlx::test]
async fn a_driver_with_an_origin_of_its_own_has_storage_and_reaches_nothing_else(pool: PgPool) {
    let (mut site, driver, id) = with_driver(pool).await;
    let other = site.submit(1).await.remove(0);
    run(&site, &other, driver.start().await).await;
    let (port, _running) = with_origin(&mut site, |port| format!("http://{{id}}.ui.localhost:{port}")).await;
    let (url, others) = (url_of(&site, &id).await, url_of(&site, &other).await);
    assert!(url.starts_with(&format!("http://{id}.ui.localhost:{port}/v1/ui/{id}/")), "{url}");
    let gateway = format!("http://localhost:{port}");
    let mut browser = Browser::start(&site.key).await;
    browser.open(&format!("{gateway}/console/submissions")).await;
    browser.eval("localStorage.setItem('ours', 'secret')").await;

    browser.open(&format!("{url}attack/")).await;
    browser.until("window.reached").await;
    let reached = browser.eval("window.reached").await;
    assert_eq!(reached["origin"], format!("http://{id}.ui.localhost:{port}"), "{reached}");
    assert_eq!(reached["own"], "1", "{reached}");
    for name in ["console", "api", "with credentials", "kill"] {
        assert!(reached[name].as_str().unwrap().contains("and nothing else"), "{name}: {reached}");
    }
    for name in ["elsewhere", "frame", "worker"] {
        assert!(reached[name].is_null(), "{name}: {reached}");
    }
    // The gateway itself, and another driver, from this page.
    for address in [format!("{gateway}/v1/submissions"), format!("{others}jobs/")] {
        let read =
            format!("fetch('{address}', {{credentials: 'include'}}).then((answer) => answer.text(), () => null)");
        assert!(browser.eval(&read).await.is_null(), "{address}");
    }
    assert_eq!(site.page(&format!("/v1/submissions/{id}")).await.json()["state"], "RUNNING");
    browser.open(&format!("{url}jobs/")).await;
    assert_eq!(browser.eval("localStorage.getItem('mine')").await, "1", "the storage of the browser");
    browser.open(&format!("{others}jobs/")).await;
    assert!(browser.eval("localStorage.getItem('mine')").await.is_null(), "each driver has its own");
    browser.open(&format!("{gateway}/console/submissions")).await;
    assert_eq!(browser.eval("localStorage.getItem('ours') + localStorage.getItem('mine')").await, "secretnull");
    // From the console to the UI, as a user does it.
    browser.call("Page.navigate", json!({"url": format!("{gateway}/v1/submissions/{id}/ui/stages/?x=1")})).await;
    browser
        .until(&format!("location.host === '{id}.ui.localhost:{port}' && location.href.endsWith('/stages/?x=1')"))
        .await;
}

#[sqlx::test]
async fn the_host_of_uis_serves_nothing_else_and_the_gateway_no_uis(pool: PgPool) {
    let (mut site, driver, id) = with_driver(pool).await;
    let other = site.submit(1).await.remove(0);
    run(&site, &other, driver.start().await).await;
    let html = [("accept", "text/html")];
    for (origin, is_of_one) in [("https://{id}.ui.example.org", true), ("https://UI.example.org", false)] {
        let (_, _running) = with_origin(&mut site, |_| origin.to_owned()).await;
        let url = url_of(&site, &id).await;
        let (host, path) = url.strip_prefix("https://").unwrap().split_once('/').unwrap();
        let (path, jobs) = (format!("/{path}"), format!("/{path}jobs/"));
        for host in [host.to_owned(), host.to_uppercase(), format!("{host}:443")] {
            let page = ask(&site, "GET", &host, &jobs, &[]).await;
            assert_eq!(page.status, 200, "{host}: {page:?}");
            let policy = &page.headers["content-security-policy"];
            assert_eq!(policy.contains("allow-same-origin"), is_of_one, "{policy}");
            assert!(policy.starts_with("sandbox "), "{policy}");
        }
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/console/submissions"),
            ("GET", "/console/sign-in"),
            ("GET", "/v1/submissions"),
            ("GET", &format!("/v1/submissions/{id}/ui/")),
            ("GET", "/livez"),
            ("GET", "/docs"),
            ("POST", "/v1/submissions/create"),
            ("POST", "/v1/submissions/killall"),
            ("GET", "/v1/uix"),
            ("GET", "/v1/ui/x"),
        ] {
            let refused = ask(&site, method, host, path, &[("authorization", &format!("Bearer {}", site.key))]).await;
            assert_eq!((refused.status, &refused.json()["code"]), (404, &json!("not-found")), "{method} {path}");
        }
        let refused = ask(&site, "GET", host, "/console/submissions", &html).await;
        assert!(refused.status == 404 && refused.body.contains("and nothing else"), "{refused:?}");
        assert!(
            refused.body.contains(&refused.headers["x-request-id"]) && refused.body.contains("<h1>"),
            "{refused:?}"
        );

        // At the gateway's own host: a browser is led to the UI's, and a program is refused.
        let away = ask(&site, "GET", "gateway", &format!("{jobs}?id=1"), &html).await;
        let back = format!("../../../../submissions/{id}/ui/jobs/?id=1");
        assert_eq!((away.status, &away.headers["location"]), (303, &back));
        assert_eq!(ask(&site, "GET", "gateway", &jobs, &[]).await.json()["code"], "spark-ui-not-found");
        driver.seen();
        let foreign = ask(&site, "GET", &host.replace(&id, &other), &jobs, &html).await;
        assert_eq!(foreign.status, if is_of_one { 404 } else { 200 }, "another driver's host");
        assert_eq!(driver.seen().is_empty(), is_of_one);
        let forged = ask(&site, "GET", host, &path.replace(&id, &other), &html).await;
        assert!(forged.status == 404 && forged.headers["content-type"].starts_with("text/html"), "{forged:?}");

        for (from, mode, status) in [
            ("same-origin", "cors", if is_of_one { 200 } else { 403 }),
            ("same-site", "no-cors", 403),
            ("cross-site", "cors", if is_of_one { 403 } else { 200 }),
            ("cross-site", "navigate", 200),
            ("none", "navigate", 200),
        ] {
            let page = ask(&site, "GET", host, &jobs, &[("sec-fetch-site", from), ("sec-fetch-mode", mode)]).await;
            assert_eq!(page.status, status, "{origin}: {from} {mode}");
        }
    }
}

#[sqlx::test]
async fn people_see_pages_at_the_address_of_a_ui_and_programs_problems(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let (admin, foreign) = (world.key(Role::Admin, None).await, world.key(Role::Viewer, Some("blue")).await);
    let id = world.submit(&admin, "red").await;
    let unknown = "driver-19990101000000-0001";
    let open = async |key: Option<&str>, id: &str, accept: &str| {
        let request = Request::get(format!("/v1/submissions/{id}/ui/jobs/")).header(header::HOST, "gateway");
        let request = match key {
            Some(key) => request.header(header::AUTHORIZATION, format!("Bearer {key}")),
            None => request,
        };
        world.answer(request.header(header::ACCEPT, accept).body(Body::empty()).unwrap()).await
    };
    let page = "text/html,application/xhtml+xml,*/*;q=0.8";
    let unknown_caller = open(None, &id, page).await;
    assert_eq!(unknown_caller.status, 401);
    assert!(
        unknown_caller.headers["content-type"].starts_with("text/html")
            && unknown_caller.headers.contains_key("www-authenticate")
    );
    for part in [
        "action=\"../../../../../console/sign-in/key\"",
        &unknown_caller.headers["x-request-id"],
        "href=\"../../../../../console/submissions\"",
    ] {
        assert!(unknown_caller.body.contains(part), "{part}: {}", unknown_caller.body);
    }
    for accept in ["application/json", "*/*"] {
        assert_eq!(open(None, &id, accept).await.json()["code"], "unauthenticated");
        assert_eq!(open(Some(&foreign), &id, accept).await.json()["code"], "submission-not-found");
    }
    let mut bodies = Vec::new();
    for id in [&*id, unknown] {
        let answer = open(Some(&foreign), id, page).await;
        assert!(answer.status == 404 && answer.headers["content-type"].starts_with("text/html"), "{answer:?}");
        assert!(answer.body.contains("<h1>") && answer.body.contains("no longer kept"), "{}", answer.body);
        assert!(answer.body.contains(&answer.headers["x-request-id"]), "{}", answer.body);
        bodies.push(answer.body.replace(id, "ID").replace(&answer.headers["x-request-id"], "REQUEST"));
    }
    assert_eq!(bodies[0], bodies[1]);
}

#[sqlx::test]
async fn a_browser_whose_session_has_ended_signs_in_and_is_back_at_the_ui(pool: PgPool) {
    let (issuer, listener) = (Issuer::start().await, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let site = format!("http://{}", listener.local_addr().unwrap());
    let world = World::new(pool, &issuer.access(&format!("externalUrl: '{site}'"))).await;
    let _running = crate::console::site::run(&world, listener);
    let id = world.submit(&issuer.token(), "red").await;
    let mut browser = Browser::without_key().await;
    let url = format!("{site}/v1/submissions/{id}/ui/jobs/?x=1");
    for _ in 0..2 {
        browser.open(&url).await;
        browser.until("document.querySelector('.problem h1')?.textContent === 'Sign in'").await;
        browser.until("getComputedStyle(document.querySelector('header.top')).display === 'flex'").await;
        browser.click("document.querySelector('a.primary')").await;
        // The driver isn't up, and its page says so.
        browser.until("document.body?.textContent.includes('the submission is QUEUED')").await;
        let address = browser.eval("location.pathname + location.search").await;
        let address = address.as_str().unwrap();
        assert!(address.starts_with(&format!("/v1/ui/{id}/")) && address.ends_with("/jobs/?x=1"), "{address}");
        sqlx::query("DELETE FROM browser_sessions").execute(&world.pool).await.unwrap();
    }
}
