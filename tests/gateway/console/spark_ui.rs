//! Spark UIs of drivers that are hostile, or absent.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    service::{HistoryUrl, SparkUiSettings},
};
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::console::site::Site;
use crate::in_memory::Answer;

/// A page that attacks the origin that it comes from, and reports what it reached.
const ATTACK: &str = r#"<!DOCTYPE html><html><head><title>attack</title></head><body>
<form id="form" method="post" action="/v1/submissions/killall"></form>
<script>
const reached = {};
const attempt = async (name, what) => { try { reached[name] = await what(); } catch (error) { reached[name] = null; } };
const read = async (path) => (await fetch(path)).text();
(async () => {
    await attempt("cookie", () => { document.cookie = "evil=1"; return document.cookie; });
    await attempt("console", () => read("/console/submissions"));
    await attempt("api", () => read("/v1/submissions"));
    await attempt("with credentials", async () => (await fetch("/v1/submissions", {credentials: "include"})).text());
    await attempt("kill", async () => (await fetch("/v1/submissions/killall", {method: "POST"})).text());
    await attempt("blind kill", async () => { await fetch("/v1/submissions/killall", {method: "POST", mode: "no-cors"}); return null; });
    await attempt("worker", async () => { await navigator.serviceWorker.register("worker.js", {scope: "/"}); return "registered"; });
    await attempt("database", async () => { indexedDB.open("x"); return "opened"; });
    await attempt("elsewhere", async () => { await fetch("http://127.0.0.2:9/", {mode: "no-cors"}); return "reached"; });
    await attempt("frame", () => new Promise((done) => {
        const frame = document.createElement("iframe");
        frame.src = "/console/submissions";
        frame.onload = () => { try { done(frame.contentDocument.title || null); } catch { done(null); } };
        document.body.append(frame);
    }));
    localStorage.setItem("mine", "1");
    reached.own = localStorage.getItem("mine");
    reached.origin = origin;
    window.reached = reached;
})();
</script></body></html>"#;

/// A driver: an HTTP server, and what its requests had.
#[derive(Clone, Default)]
pub(crate) struct Driver(Arc<Mutex<Vec<(String, HeaderMap)>>>);

impl Driver {
    pub(crate) async fn start(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    pub(crate) fn seen(&self) -> Vec<(String, HeaderMap)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

async fn answer(State(driver): State<Driver>, request: Request) -> Response {
    let (path, method) = (request.uri().path().to_owned(), request.method().clone());
    driver.0.lock().unwrap().push((format!("{method} {}", request.uri()), request.headers().clone()));
    let evil = [
        (header::SET_COOKIE, HeaderValue::from_static("session=evil; Path=/")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src *")),
        (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true")),
        (header::REFRESH, HeaderValue::from_static("0; https://evil.example/")),
    ];
    let page = |text: &str| (evil.clone(), [(header::CONTENT_TYPE, "text/html")], text.to_owned()).into_response();
    match path.as_str() {
        "/attack/" => page(ATTACK),
        "/worker.js" => ([(header::CONTENT_TYPE, "text/javascript")], "").into_response(),
        "/elsewhere/" => (StatusCode::FOUND, [(header::LOCATION, "https://evil.example/phish?x=1")]).into_response(),
        "/script/" => (StatusCode::FOUND, [(header::LOCATION, "javascript:alert(1)")]).into_response(),
        "/endless/" => Body::from_stream(stream::repeat_with(|| Ok::<_, String>(vec![b'x'; 1 << 16]))).into_response(),
        "/large/" => "x".repeat(1 << 20).into_response(),
        "/silent/" => std::future::pending().await,
        "/broken/" => {
            let parts = stream::iter([Ok(vec![b'x'; 1 << 20]), Err("broken")]);
            ([(header::CONTENT_LENGTH, "2000000")], Body::from_stream(parts)).into_response()
        }
        "/echo/" => {
            String::from_utf8(request.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap().into_response()
        }
        _ => page("<!DOCTYPE html><title>Spark</title>"),
    }
}

/// Makes a submission run whose driver listens there.
pub(crate) async fn run(site: &Site, id: &str, address: SocketAddr) {
    let client = &site.world.client;
    let document = site.page(&format!("/v1/submissions/{id}")).await.json();
    let (namespace, name) = (document["namespace"].as_str().unwrap(), document["driver"]["pod"].as_str().unwrap());
    let namespaces = Api::<Namespace>::all(client.clone());
    if namespaces.get_opt(namespace).await.unwrap().is_none() {
        let new = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        namespaces.create(&PostParams::default(), &new).await.unwrap();
    }
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "driver", "image": "spark",
        "ports": [{"name": "spark-ui", "containerPort": address.port()}]}]}});
    let pod = pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let status = json!({"status": {"phase": "Running", "podIP": address.ip()}});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let uid = pod.metadata.uid.unwrap();
    site.set(
        id,
        &format!("state = 'RUNNING', started_at = clock_timestamp() - interval '2 minutes', pod_uid = '{uid}'"),
    )
    .await;
}

/// Sets what the gateway does with UIs from now on.
pub(crate) async fn set(site: &mut Site, settings: SparkUiSettings) {
    site.world.configure(|setup| setup.spark_ui = settings).await;
}

/// Returns where the UI of a submission is for a caller, without a slash at the end.
async fn ui_of(site: &Site, key: &str, id: &str) -> String {
    let answer = site.world.get(key, &format!("/v1/submissions/{id}/ui")).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    let location = answer.headers["location"].strip_prefix("../../").unwrap_or_else(|| panic!("{answer:?}"));
    format!("/v1/{}", location.trim_end_matches('/'))
}

/// Asks without credentials.
async fn ask(site: &Site, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "gateway");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    site.world.answer(request.body(Body::empty()).unwrap()).await
}

pub(crate) async fn with_driver(pool: PgPool) -> (Site, Driver, String) {
    let (site, driver) = (Site::start(pool).await, Driver::default());
    let id = site.submit(1).await.remove(0);
    run(&site, &id, driver.start().await).await;
    (site, driver, id)
}

#[sqlx::test]
async fn a_hostile_driver_harms_neither_the_console_nor_the_gateway(pool: PgPool) {
    let (site, driver, id) = with_driver(pool).await;
    let mut browser = Browser::start(&site.key).await;
    browser.open(&site.url("/console/submissions")).await;
    browser.eval("localStorage.setItem('ours', 'secret')").await;
    let base = ui_of(&site, &site.key, &id).await;
    browser.open(&site.url(&format!("{base}/attack/"))).await;
    browser.until("window.reached").await;
    let reached = browser.eval("window.reached").await;
    let reached = reached.as_object().unwrap();
    for (name, value) in reached {
        let expected = match name.as_str() {
            "own" => json!("1"),
            "origin" => json!("null"),
            _ => Value::Null,
        };
        assert_eq!(*value, expected, "{name}: {reached:?}");
    }
    assert!(reached.len() > 10, "{reached:?}");
    // A form is sent with the navigation, and answered with a refusal.
    browser.eval("document.getElementById('form').submit()").await;
    browser.until("document.body?.textContent.includes('may not use this gateway')").await;
    let state = site.page(&format!("/v1/submissions/{id}")).await.json()["state"].clone();
    assert_eq!(state, "RUNNING");
    let cookies = browser.call("Network.getCookies", json!({"urls": [site.url("/")]})).await;
    assert_eq!(cookies["cookies"], json!([]));
    browser.faults().await;
    browser.open(&site.url("/console/submissions")).await;
    assert_eq!(browser.eval("localStorage.getItem('ours') + localStorage.getItem('mine')").await, "secretnull");
    // The console can't load what a driver serves.
    let loaded = format!("fetch('{base}/').then((answer) => answer.status)");
    assert_eq!(browser.eval(&loaded).await, 403);
    for (_, headers) in driver.seen() {
        assert!(!format!("{headers:?}").contains("Bearer"), "{headers:?}");
        assert!(!headers.contains_key(header::COOKIE) && headers["x-forwarded-context"] == *base, "{headers:?}");
    }
}

#[sqlx::test]
async fn what_a_driver_answers_stays_below_its_path_and_without_its_headers(pool: PgPool) {
    let (site, driver, id) = with_driver(pool).await;
    let base = ui_of(&site, &site.key, &id).await;
    let page =
        ask(&site, "GET", &format!("{base}/jobs/job/?id=1"), &[("cookie", "a=b"), ("authorization", "Bearer x")]).await;
    assert_eq!(page.status, 200);
    assert!(
        page.body.starts_with("<!DOCTYPE html><script>") && page.body.ends_with("<title>Spark</title>"),
        "{}",
        page.body
    );
    assert!(page.headers["content-security-policy"].starts_with("sandbox allow-scripts "), "{:?}", page.headers);
    for name in ["set-cookie", "refresh", "access-control-allow-credentials"] {
        assert!(!page.headers.contains_key(name), "{:?}", page.headers);
    }
    let (asked, headers) = driver.seen().remove(0);
    assert_eq!(asked, "GET /jobs/job/?id=1");
    let names: Vec<_> = headers.keys().map(header::HeaderName::as_str).collect();
    assert_eq!(names, ["x-forwarded-context", "host"], "{headers:?}");

    let moved = ask(&site, "GET", &format!("{base}/elsewhere/"), &[("x-forwarded-prefix", "/spark")]).await;
    assert_eq!((moved.status, &*moved.headers["location"]), (302, &*format!("/spark{base}/phish?x=1")));
    assert_eq!(ask(&site, "GET", &format!("{base}/script/"), &[]).await.status, 503);
    // A page in an origin of its own may read it, and asks first whether it may.
    let asks = [
        ("origin", "null"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "x-requested-with"),
    ];
    let answer = ask(&site, "OPTIONS", &format!("{base}/api/v1/applications"), &asks).await;
    assert_eq!((answer.status, &*answer.headers["access-control-allow-origin"]), (200, "*"));
    let large = ask(&site, "GET", &format!("{base}/large/"), &[("accept-encoding", "gzip")]).await;
    assert_eq!((large.status, &*large.headers["content-encoding"]), (200, "gzip"));
    let head = ask(&site, "HEAD", &format!("{base}/jobs/"), &[]).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[sqlx::test]
async fn a_driver_without_end_or_answer_holds_up_only_itself(pool: PgPool) {
    let (site, driver, id) = with_driver(pool).await;
    let other = site.submit(1).await.remove(0);
    run(&site, &other, driver.start().await).await;
    let (base, others) = (ui_of(&site, &site.key, &id).await, ui_of(&site, &site.key, &other).await);

    let endless = site.world.open("", &format!("{base}/endless/")).await;
    assert_eq!(endless.status(), 200);
    let mut body = endless.into_body().into_data_stream();
    let mut read = 0;
    while read < 8 << 20 {
        read += body.next().await.unwrap().unwrap().len();
    }
    drop(body);
    let broken = site.world.open("", &format!("{base}/broken/")).await;
    assert_eq!(broken.status(), 200);
    let whole = broken.into_body().collect().await;
    assert!(whole.is_err(), "a body that breaks off doesn't end as if it were whole");

    let mut silent = Vec::new();
    for _ in 0..64 {
        let request = Request::get(format!("{base}/silent/")).body(Body::empty()).unwrap();
        silent.push(tokio::spawn(tower::ServiceExt::oneshot(site.world.router.clone(), request)));
    }
    while driver.0.lock().unwrap().iter().filter(|(path, _)| path.ends_with("/silent/")).count() < 64 {
        tokio::task::yield_now().await;
    }
    let refused = ask(&site, "GET", &format!("{base}/jobs/"), &[]).await;
    assert_eq!((refused.status, &refused.json()["code"]), (429, &json!("too-many-requests")));
    assert_eq!(
        ask(&site, "GET", &format!("{others}/jobs/"), &[]).await.status,
        200,
        "another driver has requests of its own"
    );
    silent.iter().for_each(tokio::task::JoinHandle::abort);
    for one in silent {
        assert!(one.await.unwrap_err().is_cancelled());
    }
    assert_eq!(ask(&site, "GET", &format!("{base}/jobs/"), &[]).await.status, 200);
}

#[sqlx::test]
async fn a_driver_that_speaks_no_http_has_no_ui(pool: PgPool) {
    let site = Site::start(pool).await;
    let answers: [&[u8]; 4] =
        [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "];
    for (answer, id) in answers.into_iter().zip(site.submit(4).await) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        run(&site, &id, listener.local_addr().unwrap()).await;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer).await;
                // The head of the last one never ends.
                while answer.ends_with(b"X: ") && stream.write_all(&[b'x'; 1024]).await.is_ok() {}
            }
        });
        let path = format!("{}/jobs/", ui_of(&site, &site.key, &id).await);
        let problem = ask(&site, "GET", &path, &[]).await;
        assert_eq!((problem.status, &problem.json()["code"]), (503, &json!("spark-ui-unavailable")), "{answer:?}");
        assert!(problem.headers.contains_key("retry-after"));
    }
}

#[sqlx::test]
async fn a_page_says_that_the_ui_is_not_up_and_loads_itself_until_it_is(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(1).await.remove(0);
    let mut browser = Browser::start(&site.key).await;
    let url = site.url(&format!("/v1/submissions/{id}/ui/jobs/"));
    browser.call("Page.navigate", json!({"url": url})).await;
    browser.until("document.body?.textContent.includes('the submission is QUEUED')").await;
    // A port at which nothing listens yet.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    run(&site, &id, address).await;
    browser.until("document.body?.textContent.includes('accepts no connection')").await;
    let listener = TcpListener::bind(address).await.unwrap();
    let router = Router::new().fallback(answer).with_state(Driver::default());
    tokio::spawn(async move { axum::serve(listener, router).await });
    browser.until("document.title === 'Spark'").await;
    let path = browser.eval("location.pathname").await;
    assert!(path.as_str().unwrap().starts_with("/v1/ui/") && path.as_str().unwrap().ends_with("/jobs/"), "{path}");
}

#[sqlx::test]
async fn a_ticket_is_for_one_submission_and_kills_for_those_who_may(pool: PgPool) {
    let (site, driver, id) = with_driver(pool).await;
    let other = site.submit(1).await.remove(0);
    run(&site, &other, driver.start().await).await;
    let viewer = site.world.key(Role::Viewer, Some("red")).await;
    let foreign = site.world.key(Role::Operator, Some("blue")).await;
    for path in ["/ui", "/ui/", "/ui/jobs/"] {
        let mut answers = Vec::new();
        for id in [&*id, "driver-19990101000000-0001"] {
            let answer = site.world.get(&foreign, &format!("/v1/submissions/{id}{path}")).await;
            answers.push((answer.status, answer.body.replace(id, "ID").replace(&answer.headers["x-request-id"], "R")));
        }
        assert_eq!((answers[0].0, &answers[0]), (404, &answers[1]), "{path}");
        assert_eq!(ask(&site, "GET", &format!("/v1/submissions/{id}{path}"), &[]).await.status, 401);
    }
    let base = ui_of(&site, &viewer, &id).await;
    let others = base.replace(&id, &other);
    let forged = ask(&site, "GET", &format!("{others}/jobs/"), &[]).await;
    assert_eq!((forged.status, &forged.json()["code"]), (404, &json!("spark-ui-not-found")));
    assert!(!forged.body.contains(base.rsplit_once('/').unwrap().1), "{}", forged.body);
    driver.seen();

    let kills = ["/jobs/job/kill/?id=0", "/stages/stage/kill/?id=0", "/jobs/job/%6Bill/?id=0"];
    for kill in kills {
        for method in ["GET", "POST", "HEAD"] {
            assert_eq!(ask(&site, method, &format!("{base}{kill}"), &[]).await.status, 403, "{method} {kill}");
        }
    }
    for path in ["/jobs//job/kill/", "/jobs/job;x/kill/", "/x/../jobs/job/kill/", "/jobs%2Fjob%2Fkill/"] {
        assert_eq!(ask(&site, "GET", &format!("{base}{path}"), &[]).await.status, 404, "{path}");
    }
    assert_eq!(ask(&site, "POST", &format!("{base}/jobs/"), &[]).await.status, 405);
    assert_eq!(ask(&site, "DELETE", &format!("{base}/jobs/"), &[]).await.status, 405);
    assert!(driver.seen().is_empty());

    let base = ui_of(&site, &site.key, &id).await;
    for method in ["GET", "POST"] {
        assert_eq!(ask(&site, method, &format!("{base}{}", kills[0]), &[]).await.status, 200);
    }
    let seen: Vec<_> = driver.seen().into_iter().map(|(asked, _)| asked).collect();
    assert_eq!(seen, ["GET /jobs/job/kill/?id=0", "POST /jobs/job/kill/?id=0"]);
    let form = Request::post(format!("{base}/echo/kill")).body(Body::from(vec![b'x'; 65 << 10])).unwrap();
    assert_eq!(site.world.answer(form).await.status, 413);
}

#[sqlx::test]
async fn a_kill_of_a_job_is_in_the_audit_with_the_caller_who_got_the_ticket(pool: PgPool) {
    let (site, driver, id) = with_driver(pool).await;
    driver.seen();
    let viewer = site.world.key(Role::Viewer, Some("red")).await;
    let subject = async |key: &str| {
        let me = site.world.get(key, "/v1/me").await.json();
        me["subject"].as_str().unwrap().to_owned()
    };
    let (reader, killer) = (subject(&viewer).await, subject(&site.key).await);
    let base = ui_of(&site, &viewer, &id).await;
    assert_eq!(ask(&site, "POST", &format!("{base}/jobs/job/kill/?id=1"), &[]).await.status, 403);
    let base = ui_of(&site, &site.key, &id).await;
    let ticket = base.rsplit_once('/').unwrap().1;
    let form =
        Request::post(format!("{base}/stages/stage/kill/")).header("content-type", "application/x-www-form-urlencoded");
    let answer = site.world.answer(form.body(Body::from("id=2&terminate=true")).unwrap()).await;
    assert_eq!(answer.status, 200);
    let audit = site.world.get(&site.key, &format!("/v1/audit?submission={id}")).await;
    assert!(!audit.body.contains(ticket), "a ticket is a credential: {}", audit.body);
    let entries: Vec<Value> = audit.json()["entries"].as_array().unwrap().clone();
    let entries: Vec<_> = entries.iter().filter(|entry| entry["action"] == "kill-in-spark-ui").collect();
    let of =
        |entry: &Value| ["subject", "verdict", "detail", "tenant"].map(|key| entry[key].as_str().unwrap().to_owned());
    let expected = |text: [&str; 4]| text.map(str::to_owned);
    assert_eq!(of(entries[0]), expected([&reader, "denied", "/jobs/job/kill/?id=1", "red"]));
    assert_eq!(of(entries[1]), expected([&killer, "allowed", "/stages/stage/kill/?id=2&terminate=true", "red"]));
    assert_eq!((entries.len(), &entries[1]["requestId"]), (2, &json!(answer.headers["x-request-id"])));
    // The driver, which sees the ticket, doesn't learn whose it is.
    let seen = format!("{:?}", driver.seen());
    assert!(seen.contains(ticket) && !seen.contains(&killer), "{seen}");
}

#[sqlx::test]
async fn kills_of_jobs_do_not_fill_the_audit(pool: PgPool) {
    let (site, driver, id) = with_driver(pool).await;
    driver.seen();
    let base = ui_of(&site, &site.key, &id).await;
    let mut refused = 0;
    while refused == 0 {
        let answer = ask(&site, "GET", &format!("{base}/jobs/job/kill/?id=1"), &[]).await;
        assert!([200, 429].contains(&answer.status), "{answer:?}");
        refused += usize::from(answer.status == 429);
    }
    let sent = driver.seen().len();
    let entries = "SELECT count(*) FROM audit WHERE action = 'kill-in-spark-ui'";
    let entries: i64 = sqlx::query_scalar(entries).fetch_one(&site.world.pool).await.unwrap();
    assert_eq!(i64::try_from(sent).unwrap(), entries, "none is sent without an entry");
    // Other requests to the driver are not affected.
    assert_eq!(ask(&site, "GET", &format!("{base}/jobs/"), &[]).await.status, 200);
}

#[sqlx::test]
async fn the_ui_of_a_submission_leads_to_the_history_server_after_its_end(pool: PgPool) {
    let (mut site, _, id) = with_driver(pool).await;
    let document = async |site: &Site| site.page(&format!("/v1/submissions/{id}")).await.json();
    assert_eq!(document(&site).await["sparkUi"], format!("/v1/submissions/{id}/ui/"));
    let page = site.page(&format!("/console/submissions/{id}")).await.body;
    assert!(page.contains(&format!("href=\"../../v1/submissions/{id}/ui/\"")), "{page}");
    let base = ui_of(&site, &site.key, &id).await;

    // A pod of the same name is another one, and one that is gone has no address.
    let app_id = document(&site).await["applicationId"].as_str().unwrap().to_owned();
    let pods = Api::<Pod>::namespaced(site.world.client.clone(), "red");
    let name = document(&site).await["driver"]["pod"].as_str().unwrap().to_owned();
    pods.delete(&name, &DeleteParams::default().grace_period(0)).await.unwrap();
    while ask(&site, "GET", &format!("{base}/jobs/"), &[]).await.status != 503 {
        tokio::task::yield_now().await;
    }

    site.set(&id, "state = 'FINISHED', finished_at = clock_timestamp()").await;
    let html = [("accept", "text/html")];
    let gone = ask(&site, "GET", &format!("{base}/jobs/"), &html).await;
    assert!(gone.status == 404 && gone.body.contains("The Spark UI is gone"), "{gone:?}");
    assert_eq!(ask(&site, "GET", &format!("{base}/jobs/"), &[]).await.json()["code"], "spark-ui-not-found");
    assert_eq!(document(&site).await.get("sparkUi"), None);

    let history: HistoryUrl = "https://history.example.org/history/{appId}/jobs/".parse().unwrap();
    let settings = SparkUiSettings { history: Some(history), ..SparkUiSettings::default() };
    set(&mut site, settings).await;
    let expected = format!("https://history.example.org/history/{app_id}/jobs/");
    assert_eq!(document(&site).await["sparkUi"], expected);
    for path in [format!("/v1/submissions/{id}/ui"), format!("{base}/jobs/")] {
        let request =
            Request::get(&path).header("accept", "text/html").header("authorization", format!("Bearer {}", site.key));
        let moved = site.world.answer(request.body(Body::empty()).unwrap()).await;
        assert_eq!((moved.status, &moved.headers["location"]), (303, &expected), "{path}");
    }
    set(&mut site, SparkUiSettings { is_served: false, ..SparkUiSettings::default() }).await;
    site.set(&id, "state = 'RUNNING', finished_at = NULL").await;
    assert_eq!(site.page(&format!("/v1/submissions/{id}/ui")).await.json()["code"], "spark-ui-not-found");
    assert_eq!(ask(&site, "GET", &format!("{base}/jobs/"), &[]).await.status, 404);
    assert_eq!(document(&site).await.get("sparkUi"), None);
}
