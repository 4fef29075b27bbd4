//! Sign-in of browsers with an API key, where no issuer signs them in.

use axum::{
    body::Body,
    http::{Request, header},
};
use http_body_util::BodyExt;
use sparkgate::{access::Role, server::Peer};
use sqlx::PgPool;
use tower::ServiceExt;

use crate::access::world::World;
use crate::console::site::TENANTS;

const OPENED: [(&str, &str); 2] = [("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")];
const FORM: [(&str, &str); 3] = [
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("content-type", "application/x-www-form-urlencoded"),
];

struct Reply {
    status: u16,
    headers: header::HeaderMap,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Returns the cookie that it sets, as a browser sends it.
    fn cookie(&self) -> String {
        self.header("set-cookie").split(';').next().unwrap().to_owned()
    }
}

async fn send(world: &World, method: &str, path: &str, headers: &[(&str, &str)], form: &[(&str, &str)]) -> Reply {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header(header::HOST, "192.0.2.1");
    }
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let response = world.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    Reply { status: head.status.as_u16(), headers: head.headers, body }
}

async fn sign_in(world: &World, key: &str, to: &str) -> Reply {
    let headers = [&FORM[..], &[("origin", "https://192.0.2.1")]].concat();
    send(world, "POST", "/console/sign-in/key", &headers, &[("key", key), ("to", to)]).await
}

async fn open(world: &World, cookie: &str, path: &str) -> Reply {
    send(world, "GET", path, &[&OPENED[..], &[("cookie", cookie)]].concat(), &[]).await
}

#[sqlx::test]
async fn a_key_signs_a_browser_in_until_it_is_revoked(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let admin = world.key(Role::Admin, None).await;
    let key = world.key(Role::Viewer, Some("red")).await;
    let (red, blue) = (world.submit(&admin, "red").await, world.submit(&admin, "blue").await);

    let page = send(&world, "GET", "/console/submissions?state=QUEUED", &OPENED, &[]).await;
    assert_eq!(page.status, 401);
    let form = ["action=\"sign-in/key\"", "name=\"to\" value=\"submissions?state=QUEUED\"", "name=\"key\""];
    assert!(form.iter().all(|part| page.body.contains(part)), "{}", page.body);
    assert!(!page.body.contains("Authorization"), "a browser sends no header: {}", page.body);

    let signed_in = sign_in(&world, &key, "submissions?state=QUEUED").await;
    assert_eq!((signed_in.status, signed_in.header("location")), (303, "../submissions?state=QUEUED"));
    let set = signed_in.header("set-cookie");
    assert!(set.starts_with("__Host-sparkgate-session=") && set.ends_with("HttpOnly; SameSite=Lax; Secure"), "{set}");
    let cookie = signed_in.cookie();
    let list = open(&world, &cookie, "/console/submissions").await;
    assert!(list.body.contains(&red) && !list.body.contains(&blue), "it sees what the key sees");
    assert!(list.body.contains("Sign out"), "{}", list.body);
    let stored: (String, Vec<u8>) =
        sqlx::query_as("SELECT principal, sealed FROM browser_sessions").fetch_one(&world.pool).await.unwrap();
    assert!(stored.0.starts_with("key:") && !stored.1.windows(key.len()).any(|part| part == key.as_bytes()));
    let audited: String = sqlx::query_scalar("SELECT detail FROM audit WHERE action = 'sign-in' AND principal = $1")
        .bind(&stored.0)
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(audited, "API key");

    let id = stored.0.strip_prefix("key:").unwrap();
    assert_eq!(world.send(Some(&admin), "DELETE", &format!("/v1/tokens/{id}"), None).await.status, 204);
    // Another replica, which has not checked the key a moment ago.
    let other = World::new(world.pool.clone(), TENANTS).await;
    let ended = open(&other, &cookie, "/console/submissions").await;
    assert!(ended.status == 401 && ended.body.contains("name=\"key\""), "{}", ended.body);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM browser_sessions").fetch_one(&world.pool).await.unwrap();
    assert_eq!(left, 0, "the session ends with the key");
}

#[sqlx::test]
async fn a_session_ends_with_its_key_and_at_the_sign_out(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let key = world.key(Role::Viewer, Some("red")).await;
    sqlx::query("UPDATE api_keys SET expires_at = now() + interval '1 hour'").execute(&world.pool).await.unwrap();
    let cookie = sign_in(&world, &key, "").await.cookie();
    let is_shorter: bool = sqlx::query_scalar(
        "SELECT s.expires_at BETWEEN k.expires_at - interval '1 minute' AND k.expires_at + interval '1 second'
         FROM browser_sessions s, api_keys k",
    )
    .fetch_one(&world.pool)
    .await
    .unwrap();
    assert!(is_shorter, "a session doesn't outlive its key");
    let out = send(&world, "POST", "/console/sign-out", &[&FORM[..], &[("cookie", &cookie)]].concat(), &[]).await;
    assert!(out.status == 200 && out.header("set-cookie").contains("Max-Age=0"), "{}", out.body);
    assert!(out.body.contains("name=\"key\""), "the next user can sign in: {}", out.body);
    assert_eq!(open(&world, &cookie, "/console/submissions").await.status, 401);
}

#[sqlx::test]
async fn the_form_takes_keys_of_own_pages_only_and_keeps_what_was_wanted(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let key = world.key(Role::Viewer, Some("red")).await;
    let wrong = format!("{}x", &key[..key.len() - 1]);
    for (text, words) in [
        (wrong.as_str(), "The API key is incomplete"),
        ("hunter2", "This is no API key of this gateway."),
        ("", "This is no API key of this gateway."),
    ] {
        let again = sign_in(&world, text, "operator").await;
        assert_eq!(again.status, 401, "{text}");
        assert!(again.body.contains(words), "{text}: {}", again.body);
        assert!(
            again.body.contains("name=\"to\" value=\"operator\"") && again.body.contains("action=\"../sign-in/key\"")
        );
        assert!(text.is_empty() || !again.body.contains(text), "a key isn't shown");
        assert!(!again.headers.contains_key("set-cookie"));
    }
    let away = sign_in(&world, &key, "//evil.example").await;
    assert_eq!((away.status, away.header("location")), (303, "../submissions"), "only to own pages");
    for site in ["cross-site", "same-site", "none"] {
        let headers = [("sec-fetch-site", site), FORM[1], FORM[2]];
        let refused = send(&world, "POST", "/console/sign-in/key", &headers, &[("key", &key)]).await;
        assert!(refused.status == 403 && !refused.headers.contains_key("set-cookie"), "{site}: {}", refused.body);
    }
    assert_eq!(send(&world, "POST", "/console/sign-in/key", &FORM[2..], &[("key", &key)]).await.status, 403);
    // At localhost, where browsers know no HTTPS.
    let local = [&FORM[..], &[("origin", "http://localhost:6066"), ("host", "localhost:6066")]].concat();
    let local = send(&world, "POST", "/console/sign-in/key", &local, &[("key", &key)]).await;
    assert!(local.header("set-cookie").starts_with("sparkgate-session="), "{:?}", local.headers);
    let cookie = local.cookie();
    let at = |host| [&OPENED[..], &[("cookie", cookie.as_str()), ("host", host)]].concat();
    assert_eq!(send(&world, "GET", "/console/submissions", &at("localhost:6066"), &[]).await.status, 200);
    assert_eq!(send(&world, "GET", "/console/submissions", &at("192.0.2.1"), &[]).await.status, 401);
}

#[sqlx::test]
async fn an_address_with_too_many_wrong_keys_is_refused(pool: PgPool) {
    let access = TENANTS.replace("failedLogins: 100000/s", "failedLogins: 2/h");
    let world = World::new(pool, &access).await;
    let post = async || {
        let mut request = Request::post("/console/sign-in/key").header(header::HOST, "192.0.2.1");
        for (name, value) in FORM {
            request = request.header(name, value);
        }
        let mut request = request.body(Body::from("key=hunter2")).unwrap();
        request.extensions_mut().insert(Peer {
            address: "192.0.2.7:1234".parse().unwrap(),
            forwarded: None,
            certificate: None,
            is_secure: true,
        });
        world.router.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    let statuses = [post().await, post().await, post().await, post().await];
    assert_eq!(statuses[0], 401);
    assert_eq!(statuses[3], 429, "{statuses:?}");
}

#[sqlx::test]
async fn a_gateway_without_keys_has_no_form(pool: PgPool) {
    let access = TENANTS.replace(
        "authentication: {}",
        "authentication: {apiKeys: {enabled: false}, kubernetes: {audience: sparkgate}}",
    );
    let world = World::new(pool, &access).await;
    let page = send(&world, "GET", "/console/submissions", &OPENED, &[]).await;
    assert!(page.status == 401 && !page.body.contains("name=\"key\""), "{}", page.body);
    assert_eq!(sign_in(&world, "sg_x", "").await.status, 401);
}
