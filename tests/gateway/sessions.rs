//! Sessions of Spark Connect: how they are opened and ended, and requests of clients to servers that the tests play.

mod driver;
mod place;
mod shared;
mod spark_3_5;

use std::time::Duration;

use http::HeaderMap;
use serde_json::{Value, json};
use sparkgate::{access::Role, service::Setup};
use sparkgate_testing::{database::refuse_twice, wait::until};
use sqlx::PgPool;

use self::{
    driver::Driver,
    place::{Place, status},
};
use crate::in_memory::Answer;

/// Lets a gateway serve sessions, many of them.
pub(crate) fn serving(setup: &mut Setup) {
    setup.connect.listen = Some(([127, 0, 0, 1], 15002).into());
    (setup.connect.of_principal, setup.connect.of_tenant) = (1000, 1000);
}

async fn open(place: &Place, key: &str, body: &Value) -> Answer {
    place.world.send(Some(key), "POST", "/v1/sessions", Some(body)).await
}

/// Returns a session of a name in the namespace `red`.
fn named(name: &str) -> Value {
    json!({"name": name, "sparkProperties": {"spark.kubernetes.namespace": "red"}})
}

#[sqlx::test]
async fn a_request_reaches_the_server_with_its_token_and_without_what_the_client_sent_for_the_gateway(pool: PgPool) {
    let (place, driver) = (Place::new(pool).await, Driver::start().await);
    let id = place.running(&driver).await;
    let (headers, data, trailers) = place.call(&place.key, &id, "ExecutePlan", b"a plan").await.unwrap();
    assert_eq!(
        (headers["content-type"].as_bytes(), data.as_slice()),
        (&b"application/grpc"[..], &b"a plan, executed"[..])
    );
    assert_eq!(trailers["grpc-status"], "0");
    assert!(headers.get("set-cookie").is_none() && trailers.get("x-evil").is_none(), "{headers:?} {trailers:?}");
    let (path, seen) = driver.seen().remove(0);
    assert_eq!(path, "/spark.connect.SparkConnectService/ExecutePlan");
    let token = place.token_of(&id).await;
    assert!(token.len() == 64 && token != place.key);
    assert_eq!(seen["authorization"], format!("Bearer {token}"));
    let names: Vec<&str> = seen.keys().map(http::HeaderName::as_str).collect();
    assert!(
        names
            .iter()
            .all(|name| ["authorization", "content-type", "te", "user-agent"].contains(name)
                || name.starts_with("grpc-")),
        "{names:?}"
    );
    // The token is in no answer of the API, and in no object but the Secret.
    for path in
        [format!("/v1/sessions/{id}"), format!("/v1/submissions/{id}"), format!("/v1/submissions/{id}/manifest")]
    {
        let answer = place.world.get(&place.key, &path).await;
        assert!(answer.status == 200 && !answer.body.contains(&token), "{answer:?}");
    }
    let session = place.world.get(&place.key, &format!("/v1/sessions/{id}")).await.json();
    assert_eq!((&session["state"], session["lastUsedAt"].is_string()), (&json!("READY"), true), "{session}");
}

#[sqlx::test]
async fn a_request_that_no_session_may_answer_gets_a_status_that_says_why(pool: PgPool) {
    let (place, driver) = (Place::new(pool).await, Driver::start().await);
    let id = place.running(&driver).await;
    let of = async |key: &str, id: &str| status(&place.call(key, id, "Config", b"").await);
    let other = place.world.key(Role::Operator, Some("red")).await;
    let (code, message) = of("wrong", &id).await;
    assert_eq!(code, "16", "{message}");
    assert_eq!(of("", &id).await.0, "16", "no token");
    // Neither an operator of the tenant nor an administrator is the session's principal.
    for key in [&other, &place.world.key(Role::Admin, None).await] {
        let (code, message) = of(key, &id).await;
        assert!(code == "5" && message.contains("sparkgate session list"), "{code} {message}");
    }
    assert_eq!(of(&place.key, "driver-20260102030405-0001").await.0, "5");
    assert_eq!(of(&place.key, "x").await.0, "3");
    let opening = open(&place, &place.key, &named("opening")).await.json();
    let (code, message) = of(&place.key, opening["id"].as_str().unwrap()).await;
    assert!(code == "14" && message.contains("QUEUED"), "{code} {message}");
    let batch = place.world.submit(&place.key, "red").await;
    assert_eq!(of(&place.key, &batch).await.0, "5", "a submission that is no session");
    place.set(&id, "state = 'FAILED', reason = 'OOMKilled', message = 'too little memory', finished_at = now()").await;
    let (code, message) = of(&place.key, &id).await;
    assert!(code == "9" && message.contains("OOMKilled: too little memory"), "{code} {message}");
    assert!(driver.seen().is_empty(), "none of these reached the driver");
    // An attempt at the session of another principal is in the audit of its tenant.
    let audit = place.world.get(&other, &format!("/v1/audit?submission={id}")).await.json();
    let denied = audit["entries"].as_array().unwrap().iter().filter(|entry| entry["action"] == "connect");
    let denied: Vec<&Value> = denied.collect();
    assert_eq!(denied.len(), 2, "{audit}");
    let has_request = |entry: &Value| entry["requestId"].as_str().is_some_and(|id| !id.is_empty());
    assert!(denied.iter().all(|entry| entry["verdict"] == "denied" && has_request(entry)), "{audit}");
}

#[sqlx::test]
async fn a_stream_that_breaks_off_or_whose_gateway_stops_ends_with_a_status_after_which_clients_continue(pool: PgPool) {
    let (place, driver) = (Place::new(pool).await, Driver::start().await);
    let id = place.running(&driver).await;
    for method in ["Broken", "NoStatus", "Html"] {
        let (code, message) = status(&place.call(&place.key, &id, method, b"").await);
        assert_eq!(code, "14", "{method}: {message}");
    }
    // A refusal of the driver ends with its headers, as clients require.
    let refused = place.stream(&place.key, &id, "Refused", b"").await;
    assert!(refused.has_ended());
    let (code, message) = status(&place.call(&place.key, &id, "Refused", b"").await);
    assert_eq!((code.as_str(), message.as_str()), ("13", "no such table"));
    let mut stream = place.stream(&place.key, &id, "Hang", b"").await;
    assert_eq!(stream.data().await.as_deref(), Some(&b"first"[..]));
    place.world.service.health.drain();
    let trailers: HeaderMap = stream.trailers().await;
    assert_eq!(trailers["grpc-status"], "14", "{trailers:?}");
    driver.stop();
    let second = Place::beside(&place).await;
    let (code, message) = status(&second.call(&place.key, &id, "Config", b"").await);
    assert!(
        code == "14" && message.contains("accepts no connection"),
        "another replica finds it, and its driver is gone: {message}"
    );
}

#[sqlx::test]
async fn requests_of_a_session_share_a_connection_and_a_slow_reader_stops_only_its_own(pool: PgPool) {
    let (place, driver) = (Place::new(pool).await, Driver::start().await);
    let (id, other) = (place.running(&driver).await, place.running(&driver).await);
    let before = driver.accepted();
    let mut slow = Vec::new();
    // As many as a session may have, less one.
    for _ in 0..63 {
        let mut flood = place.stream(&place.key, &id, "Flood", b"").await;
        assert!(flood.data().await.is_some());
        slow.push(flood);
    }
    for session in [&id, &id, &other] {
        let (_, data, _) = place.call(&place.key, session, "ExecutePlan", &[1; 1 << 19]).await.unwrap();
        assert_eq!(data.len(), (1 << 19) + ", executed".len());
    }
    assert_eq!(driver.accepted() - before, 2, "one for each session");
}

/// Its row is stored before its submission.
#[sqlx::test]
async fn a_session_whose_submission_can_not_be_stored_leaves_its_name_free(pool: PgPool) {
    let place = Place::new(pool).await;
    let refused =
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
        CREATE TRIGGER refused BEFORE INSERT ON submissions FOR EACH ROW EXECUTE FUNCTION refuse()";
    sqlx::raw_sql(refused).execute(&place.world.pool).await.unwrap();
    refuse_twice(&place.world.pool, "BEFORE DELETE ON connect_sessions FOR EACH ROW", "P0001").await;
    let failed = open(&place, &place.key, &named("notebook")).await;
    assert!(failed.status >= 500, "{failed:?}");
    let left = async || {
        let left = "SELECT count(*) FROM connect_sessions";
        sqlx::query_scalar::<_, i64>(left).fetch_one(&place.world.pool).await.unwrap()
    };
    until("its row is removed", async || left().await == 0).await;
    sqlx::raw_sql("DROP TRIGGER refused ON submissions").execute(&place.world.pool).await.unwrap();
    let opened = open(&place, &place.key, &named("notebook")).await;
    assert_eq!(opened.status, 201, "{}", opened.body);
}

#[sqlx::test]
async fn a_use_whose_write_fails_at_first_is_recorded(pool: PgPool) {
    let (place, driver) = (Place::new(pool).await, Driver::start().await);
    let id = place.running(&driver).await;
    refuse_twice(&place.world.pool, "BEFORE UPDATE ON connect_sessions FOR EACH ROW", "P0001").await;
    assert_eq!(status(&place.call(&place.key, &id, "Config", b"").await).0, "0");
    let used = async || {
        let used = "SELECT used_at IS NOT NULL FROM connect_sessions WHERE submission_id = $1";
        sqlx::query_scalar::<_, bool>(used).bind(&id).fetch_one(&place.world.pool).await.unwrap()
    };
    until("the use is recorded", used).await;
}

#[sqlx::test]
async fn an_open_session_is_used_again_by_its_name_and_its_end_frees_the_name(pool: PgPool) {
    let place = Place::new(pool).await;
    let first = open(&place, &place.key, &named("notebook")).await;
    assert_eq!(first.status, 201, "{}", first.body);
    let again = open(&place, &place.key, &json!({"name": "notebook"})).await;
    assert_eq!((again.status, &again.json()["id"]), (200, &first.json()["id"]), "{}", again.body);
    let url = first.json()["url"].as_str().unwrap().to_owned();
    assert_eq!(url, format!("sc://gateway:15002/;x-sparkgate-session={}", first.json()["id"].as_str().unwrap()));
    let other = place.world.key(Role::Submitter, Some("red")).await;
    assert_eq!(open(&place, &other, &named("notebook")).await.status, 201, "a name is that of one principal");
    let path = format!("/v1/sessions/{}", first.json()["id"].as_str().unwrap());
    assert_eq!(place.world.send(Some(&other), "DELETE", &path, None).await.status, 403);
    let ended = place.world.send(Some(&place.key), "DELETE", &path, None).await;
    assert_eq!((ended.status, &ended.json()["state"]), (202, &json!("ENDED")), "{}", ended.body);
    let next = open(&place, &place.key, &named("notebook")).await;
    assert_eq!(next.status, 201, "{}", next.body);
    // A driver that is being killed has lost its name, too.
    place.set(next.json()["id"].as_str().unwrap(), "state = 'KILLING'").await;
    let last = open(&place, &place.key, &named("notebook")).await;
    assert_eq!(last.status, 201, "{}", last.body);
    let listed = place.world.get(&place.key, "/v1/sessions").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    let all = place.world.get(&place.key, "/v1/sessions?all=true").await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), 4, "{all}");
}

#[sqlx::test]
async fn a_session_that_cannot_be_is_refused(pool: PgPool) {
    let mut place = Place::new(pool).await;
    for (field, value, words) in [
        ("idleTimeoutSeconds", json!(59), "from 60"),
        ("name", json!("a b"), "is no name"),
        ("appResource", json!("local:///a.jar"), "no such field"),
        (
            "sparkProperties",
            json!({"spark.kubernetes.namespace": "red", "spark.connect.authenticate.token": "x"}),
            "token of its own",
        ),
    ] {
        let mut body = named("x");
        body[field] = value;
        let answer = open(&place, &place.key, &body).await;
        assert!(answer.status == 400 && answer.body.contains(words), "{field}: {answer:?}");
    }
    // As a batch, Spark's refusal stays.
    let batch = json!({"appResource": "spark-internal", "mainClass": "org.apache.spark.sql.connect.service.SparkConnectServer",
        "sparkProperties": {"spark.kubernetes.namespace": "red"}});
    let answer = place.world.send(Some(&place.key), "POST", "/v1/submissions", Some(&batch)).await;
    assert!(answer.status == 400 && answer.body.contains("Spark Connect server"), "{answer:?}");
    place.world.configure(|setup| setup.connect.of_principal = 1).await;
    assert_eq!(open(&place, &place.key, &named("a")).await.status, 201);
    let full = open(&place, &place.key, &named("b")).await;
    assert!(full.status == 403 && full.body.contains("too many live sessions"), "{full:?}");
    place.world.configure(|setup| setup.connect.listen = None).await;
    let off = open(&place, &place.key, &named("c")).await;
    assert!(off.status == 400 && off.body.contains("connect-listen"), "{off:?}");
    let rows: i64 =
        sqlx::query_scalar("SELECT count(*) FROM connect_sessions").fetch_one(&place.world.pool).await.unwrap();
    assert_eq!(rows, 1, "what is refused leaves no row");
}

#[sqlx::test]
async fn a_session_that_no_client_uses_is_ended_and_the_next_request_says_so(pool: PgPool) {
    let (place, driver) = (Place::new(pool).await, Driver::start().await);
    let (idle, used) = (place.running(&driver).await, place.running(&driver).await);
    place.call(&place.key, &used, "Config", b"").await.unwrap();
    place.of_session(&idle, "ready_at = now() - interval '2 days', used_at = now() - interval '1 day'").await;
    place.set(&idle, "started_at = now() - interval '2 days'").await;
    place.set(&used, "started_at = now() - interval '2 days'").await;
    let _running = place.sweep();
    let state = async |id: &str| place.world.get(&place.key, &format!("/v1/sessions/{id}")).await.json();
    while state(&idle).await["state"] != "ENDED" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(state(&idle).await["message"].as_str().unwrap().contains("after 30m without a request"));
    assert_eq!(state(&used).await["state"], "READY");
    let (code, message) = status(&place.call(&place.key, &idle, "Config", b"").await);
    assert!(
        code == "9" && message.contains("without a request") && message.contains("sparkgate connect"),
        "{code} {message}"
    );
    let killed = place.world.get(&place.key, &format!("/v1/submissions/{idle}")).await.json();
    assert_eq!(killed["state"], "KILLING", "{killed}");
}

#[sqlx::test]
async fn the_page_of_sessions_shows_who_uses_them_and_when_they_end(pool: PgPool) {
    let (place, driver) = (Place::new(pool).await, Driver::start().await);
    let page = async |key: &str| place.world.get(key, "/console/sessions").await.body;
    assert!(page(&place.key).await.contains("No session is open."));
    let id = place.running(&driver).await;
    place.call(&place.key, &id, "Config", b"").await.unwrap();
    let own = page(&place.key).await;
    for text in
        [">ready</span>", "unless it is used", "sc://gateway:15002/;x-sparkgate-session=", &format!("submissions/{id}")]
    {
        assert!(own.contains(text), "{text}: {own}");
    }
    // An operator of the tenant may end it, and can't connect to it.
    let operator = place.world.key(Role::Operator, Some("red")).await;
    let theirs = page(&operator).await;
    assert!(theirs.contains(&format!("sessions/{id}/end")) && !theirs.contains("sc://"), "{theirs}");
    let viewer = page(&place.world.key(Role::Viewer, Some("red")).await).await;
    assert!(viewer.contains(&id) && !viewer.contains("/end\""), "{viewer}");
    assert!(!page(&place.world.key(Role::Operator, Some("blue")).await).await.contains(&id), "another tenant's");
    let ended = place.world.send(Some(&operator), "POST", &format!("/console/sessions/{id}/end"), None).await;
    assert_eq!((ended.status, ended.headers["location"].as_str()), (303, "../../sessions"), "{}", ended.body);
    assert!(page(&place.key).await.contains("No session is open."));
}
