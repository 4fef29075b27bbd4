//! Sign-in of browsers: what begins a session, what it is good for, and what ends it.

use std::{collections::BTreeMap, io::Write};

use axum::{
    body::Body,
    http::{Request, header},
};
use http_body_util::BodyExt;
use sparkgate::access::Role;
use sparkgate_testing::database::refuse_twice;
use sqlx::PgPool;
use tempfile::NamedTempFile;
use tower::ServiceExt;

use crate::access::world::World;
use crate::console::issuer::{Issuer, Parameters, SECRET};

const SESSION: &str = "__Host-sparkgate-session";
const SIGN_IN: &str = "__Host-sparkgate-sign-in";
const HTTPS: &str = "externalUrl: 'https://gate.example.org/spark'";
/// What browsers send of themselves with a page that its user opens, with a form, and with what a script reads.
const OPENED: [(&str, &str); 3] =
    [("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
const FORM: [(&str, &str); 4] = [
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
    ("content-type", "application/x-www-form-urlencoded"),
];
const READ: [(&str, &str); 3] =
    [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")];

/// A browser's cookies for the gateway.
#[derive(Clone, Default)]
struct Jar(BTreeMap<String, String>);

struct Reply {
    status: u16,
    headers: header::HeaderMap,
    cookies: Vec<String>,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

impl Jar {
    /// Sends a request to a replica with the cookies, and keeps those of the reply.
    async fn send(&mut self, world: &World, method: &str, path: &str, extra: &[(&str, &str)]) -> Reply {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "gate.example.org");
        for (name, value) in extra {
            request = request.header(*name, *value);
        }
        let cookies: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request = request.header(header::COOKIE, cookies.join("; "));
        }
        let response = world.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let cookies = head.headers.get_all(header::SET_COOKIE).iter().map(|value| value.to_str().unwrap().to_owned());
        let cookies: Vec<_> = cookies.collect();
        for cookie in &cookies {
            let (name, rest) = cookie.split_once('=').unwrap();
            match rest.split(';').next().unwrap() {
                "" => drop(self.0.remove(name)),
                value => drop(self.0.insert(name.to_owned(), value.to_owned())),
            }
        }
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Reply { status: head.status.as_u16(), headers: head.headers, cookies, body }
    }

    async fn open(&mut self, world: &World, path: &str) -> Reply {
        self.send(world, "GET", path, &OPENED).await
    }

    /// Begins a sign-in, and returns the parameters of the issuer's page.
    async fn begin(&mut self, world: &World, to: &str) -> Parameters {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("to", to).finish();
        let begun = self.open(world, &format!("/console/sign-in?issuer=corp&{query}")).await;
        assert_eq!(begun.status, 303, "{}", begun.body);
        let (_, query) = begun.header("location").split_once('?').unwrap();
        form_urlencoded::parse(query.as_bytes()).into_owned().collect()
    }

    async fn answer(&mut self, world: &World, answer: &Parameters) -> Reply {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(answer).finish();
        // Browsers come from the issuer's page.
        let headers =
            [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        self.send(world, "GET", &format!("/console/sign-in/callback?{query}"), &headers).await
    }

    /// Signs in with a token that ends soon, but not before a busy machine has signed in with it.
    async fn sign_in_briefly(&mut self, [begun, ended]: [&World; 2], issuer: &Issuer) {
        for seconds in [1, 2, 4, 8, 16] {
            issuer.with(|issued| issued.seconds = seconds);
            let request = self.begin(begun, "").await;
            if self.answer(ended, &issuer.answer(request)).await.status == 303 {
                return issuer.with(|issued| issued.seconds = 300);
            }
        }
        panic!("no sign-in within 16 s");
    }

    async fn sign_in(&mut self, world: &World, issuer: &Issuer) {
        let request = self.begin(world, "").await;
        let answered = self.answer(world, &issuer.answer(request)).await;
        assert_eq!((answered.status, answered.header("location")), (303, "../submissions"), "{}", answered.body);
    }
}

async fn both(pool: PgPool) -> (Issuer, World) {
    let issuer = Issuer::start().await;
    let world = World::new(pool, &issuer.access(HTTPS)).await;
    (issuer, world)
}

async fn sessions(world: &World) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM browser_sessions").fetch_one(&world.pool).await.unwrap()
}

async fn set(world: &World, columns: &str) {
    let statement = sqlx::AssertSqlSafe(format!("UPDATE browser_sessions SET {columns}"));
    sqlx::query(statement).execute(&world.pool).await.unwrap();
}

#[sqlx::test]
async fn a_user_signs_in_sees_what_a_token_shows_and_signs_out(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let mut browser = Jar::default();
    let page = browser.open(&world, "/console/submissions?state=FAILED").await;
    assert_eq!(page.status, 401);
    assert!(page.body.contains("href=\"sign-in?issuer=corp&amp;to=submissions%3Fstate%3DFAILED\""), "{}", page.body);

    let begun = browser.open(&world, "/console/sign-in?issuer=corp&to=submissions%3Fstate%3DFAILED").await;
    assert!(begun.header("location").starts_with(&format!("{}/authorize?", issuer.url())));
    assert!(begun.cookies[0].ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600"), "{:?}", begun.cookies);
    let request = browser.begin(&world, "submissions?state=FAILED").await;
    assert_eq!(request["redirect_uri"], "https://gate.example.org/spark/console/sign-in/callback");
    let answered = browser.answer(&world, &issuer.answer(request)).await;
    assert_eq!((answered.status, answered.header("location")), (303, "../submissions?state=FAILED"));
    assert_eq!(answered.header("cache-control"), "no-store");
    let [ended, session] = answered.cookies.as_slice() else { panic!("{:?}", answered.cookies) };
    assert!(ended.starts_with(&format!("{SIGN_IN}=;")) && ended.contains("Max-Age=0"), "{ended}");
    assert!(session.starts_with(&format!("{SESSION}=")), "{session}");
    assert!(session.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"), "{session}");

    world.submit(&issuer.token(), "red").await;
    let page = browser.open(&world, "/console/submissions").await;
    assert!(page.status == 200 && page.body.contains("corp:alice"));
    let out = "<form class=\"out\" method=\"post\" action=\"sign-out\"><button>Sign out</button></form>";
    assert!(page.body.contains(out));
    let by_token = world.get(&issuer.token(), "/console/submissions").await;
    let without_times = |page: &str| {
        page.split("<time")
            .map(|part| part.split_once("</time>").map_or(part, |(_, rest)| rest).to_owned())
            .collect::<String>()
    };
    assert_eq!(without_times(&page.body.replace(out, "")), without_times(&by_token.body), "one principal");

    let before = browser.clone();
    let page = browser.send(&world, "POST", "/console/sign-out", &FORM).await;
    assert_eq!((page.status, browser.0.len(), sessions(&world).await), (200, 0, 0));
    let onward = page.header("refresh").strip_prefix("0; url=").unwrap();
    let (end, query) = onward.split_once('?').unwrap();
    let query: Parameters = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    assert_eq!(end, format!("{}/end", issuer.url()));
    assert_eq!(query["post_logout_redirect_uri"], "https://gate.example.org/spark/console/signed-out");
    assert!(query["id_token_hint"].split('.').count() == 3);
    assert_eq!(before.clone().open(&world, "/console/submissions").await.status, 401, "the cookie has ended");
    assert_eq!(browser.open(&world, "/console/signed-out").await.status, 200);

    let admin = world.key(Role::Admin, None).await;
    let audit = world.get(&admin, "/v1/audit").await.json();
    let entries: Vec<_> =
        audit["entries"].as_array().unwrap().iter().filter(|entry| entry["subject"] == "corp:alice").collect();
    let actions: Vec<_> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["sign-in", "submit", "sign-out"]);
}

#[sqlx::test]
async fn an_answer_counts_only_for_the_sign_in_that_asked_for_it_and_once(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let change = |answer: &Parameters, name: &str, value: &str| {
        let mut answer = answer.clone();
        answer.insert(name.to_owned(), value.to_owned());
        answer
    };
    let mut victim = Jar::default();
    let request = victim.begin(&world, "overview").await;
    let answer = issuer.answer(request.clone());
    let mut attacker = Jar::default();
    let other = attacker.begin(&world, "").await;
    let foreign = issuer.answer(other.clone());
    for (name, jar, answer) in [
        ("a tampered state", victim.clone(), change(&answer, "state", "x")),
        ("no state", victim.clone(), change(&answer, "state", "")),
        ("the answer of another browser's sign-in", victim.clone(), foreign.clone()),
        ("another browser's state with an own code", attacker.clone(), change(&answer, "code", &foreign["code"])),
        ("a browser without a sign-in", Jar::default(), answer.clone()),
        ("the answer of another issuer", victim.clone(), change(&answer, "iss", "https://evil.example")),
        ("an answer of no issuer", victim.clone(), {
            let mut answer = answer.clone();
            answer.remove("iss");
            answer
        }),
        ("a code that isn't of the issuer", victim.clone(), change(&answer, "code", "code-0")),
        ("a code of another sign-in", victim.clone(), change(&answer, "code", &foreign["code"])),
        (
            "another page to return to",
            Jar([(SIGN_IN.to_owned(), {
                let cookie = &victim.0[SIGN_IN];
                format!("{}.c3VibWlzc2lvbnM", cookie.rsplit_once('.').unwrap().0)
            })]
            .into()),
            answer.clone(),
        ),
        ("an error", victim.clone(), change(&answer, "error", "access_denied")),
    ] {
        let refused = jar.clone().answer(&world, &answer).await;
        assert_eq!((refused.status, sessions(&world).await), (401, 0), "{name}: {}", refused.body);
        assert!(refused.cookies.is_empty() && refused.body.contains("sign-in?issuer=corp"), "{name}");
        assert!(!refused.body.contains("evil"), "{name}: nothing of the address is shown");
    }
    issuer.with(|issued| issued.nonce = Some("another".to_owned()));
    let request = victim.begin(&world, "overview").await;
    let refused = victim.clone().answer(&world, &issuer.answer(request)).await;
    assert!(refused.status == 401 && refused.body.contains("another sign-in"), "{}", refused.body);
    issuer.with(|issued| issued.nonce = None);
    let request = victim.begin(&world, "overview").await;
    let (answer, mut again) = (issuer.answer(request), victim.clone());
    assert_eq!(victim.answer(&world, &answer).await.header("location"), "../overview");
    assert_eq!(victim.answer(&world, &answer).await.status, 401, "the cookie is used up");
    let replayed = again.answer(&world, &answer).await;
    assert_eq!((replayed.status, sessions(&world).await), (401, 1), "the code is used up");
}

#[sqlx::test]
async fn a_sign_in_returns_to_no_other_site(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    for to in
        ["//evil.example", "https://evil.example", "/\\evil.example", "submissions/..//evil.example", "javascript:x"]
    {
        let mut browser = Jar::default();
        let request = browser.begin(&world, to).await;
        let answered = browser.answer(&world, &issuer.answer(request)).await;
        assert_eq!(answered.header("location"), "../submissions", "{to}");
    }
}

#[sqlx::test]
async fn a_session_from_before_the_sign_in_is_never_taken_over(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let mut attacker = Jar::default();
    attacker.sign_in(&world, &issuer).await;
    let planted = attacker.0[SESSION].clone();
    issuer.with(|issued| issued.user = "victoria".to_owned());
    let mut victim = attacker.clone();
    victim.sign_in(&world, &issuer).await;
    assert_ne!(victim.0[SESSION], planted);
    assert!(victim.open(&world, "/console/submissions").await.body.contains("corp:victoria"));
    assert_eq!((attacker.open(&world, "/console/submissions").await.status, sessions(&world).await), (401, 1));
    let invented = "A".repeat(43);
    let mut other = Jar([(SESSION.to_owned(), invented.clone())].into());
    assert_eq!(other.open(&world, "/console/submissions").await.status, 401);
    other.sign_in(&world, &issuer).await;
    assert_ne!(other.0[SESSION], invented);
}

#[sqlx::test]
async fn a_session_ends_when_it_is_idle_or_old_or_its_issuer_ends_it(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let mut browser = Jar::default();
    for ended in ["last_used_at = now() - interval '121 min'", "expires_at = now()"] {
        browser.sign_in(&world, &issuer).await;
        assert_eq!(browser.open(&world, "/console/submissions").await.status, 200);
        set(&world, ended).await;
        assert_eq!(browser.open(&world, "/console/submissions").await.status, 401, "{ended}");
    }
    browser.sign_in(&world, &issuer).await;
    // What a page reads by itself doesn't keep a session.
    let ago = "last_used_at = now() - interval '119 min'";
    let recent = "SELECT last_used_at > now() - interval '1 min' FROM browser_sessions WHERE expires_at > now()";
    for (headers, used) in [(READ, false), (OPENED, true)] {
        set(&world, ago).await;
        assert_eq!(browser.send(&world, "GET", "/console/submissions", &headers).await.status, 200);
        assert_eq!(sqlx::query_scalar::<_, bool>(recent).fetch_one(&world.pool).await.unwrap(), used);
    }
    browser.sign_in_briefly([&world, &world], &issuer).await;
    issuer.with(|issued| issued.revoke());
    while browser.open(&world, "/console/submissions").await.status == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(browser.open(&world, "/console/submissions").await.status, 401);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM browser_sessions WHERE expires_at > now()")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(left, 0, "its row is deleted");
}

#[sqlx::test]
async fn two_replicas_share_sessions_and_one_of_them_renews(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let other = World::new(world.pool.clone(), &issuer.access(HTTPS)).await;
    let mut browser = Jar::default();
    // Begun at one, ended at another.
    browser.sign_in_briefly([&world, &other], &issuer).await;
    issuer.with(|issued| issued.groups = vec!["eng".to_owned()]);
    while issuer.with(|issued| issued.renewals) == 0 {
        let replies = futures::future::join_all((0..6).map(|number| {
            let (mut browser, world) = (browser.clone(), if number % 2 == 0 { &world } else { &other });
            async move { browser.open(world, "/console/submissions").await.status }
        }));
        assert_eq!(replies.await, [200; 6]);
    }
    assert_eq!(issuer.with(|issued| (issued.renewals, issued.reused)), (1, 0), "a refresh token is used once");
    let id = world.submit(&world.key(Role::Submitter, Some("red")).await, "red").await;
    let page = browser.open(&other, &format!("/console/submissions/{id}")).await;
    assert!(page.status == 200 && !page.body.contains("class=\"danger\""), "the groups are those of the new token");

    assert_eq!(browser.clone().send(&world, "POST", "/console/sign-out", &FORM).await.status, 200);
    for replica in [&world, &other] {
        assert_eq!(browser.open(replica, "/console/submissions").await.status, 401);
    }
}

/// The issuer takes each refresh token once.
#[sqlx::test]
async fn renewed_tokens_survive_a_write_that_fails_at_first(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let renewed = "BEFORE UPDATE ON browser_sessions FOR EACH ROW WHEN (NEW.sealed <> OLD.sealed)";
    refuse_twice(&world.pool, renewed, "P0001").await;
    let mut browser = Jar::default();
    browser.sign_in_briefly([&world, &world], &issuer).await;
    while issuer.with(|issued| issued.renewals) == 0 {
        assert_eq!(browser.open(&world, "/console/submissions").await.status, 200);
    }
    assert_eq!(browser.open(&world, "/console/submissions").await.status, 200);
    assert_eq!(issuer.with(|issued| (issued.renewals, issued.reused)), (1, 0));
    let writes: i64 = sqlx::query_scalar("SELECT last_value FROM changes").fetch_one(&world.pool).await.unwrap();
    assert_eq!(writes, 3);
}

#[sqlx::test]
async fn a_session_is_for_the_console_and_what_its_pages_read(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let mut browser = Jar::default();
    browser.sign_in(&world, &issuer).await;
    let id = world.submit(&issuer.token(), "red").await;
    let neighbour = [("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")];
    let kill = format!("/console/submissions/{id}/kill");
    let ui = format!("/v1/submissions/{id}/ui/");
    for (method, path, headers, expected) in [
        ("GET", &*ui, &OPENED[..], 303),
        ("GET", &ui, &neighbour, 401),
        ("GET", "/v1/events", &READ[..], 200),
        ("GET", "/v1/events", &neighbour, 401),
        ("GET", "/v1/events", &[], 401),
        ("GET", "/v1/events", &OPENED, 401),
        ("GET", "/v1/submissions", &READ, 401),
        ("GET", "/v1/me", &READ, 401),
        ("POST", "/v1/submissions/killall", &FORM, 401),
        ("POST", "/v1/tokens", &FORM, 401),
        ("GET", "/console/submissions", &neighbour, 401),
        ("POST", &kill, &[], 401),
        ("POST", &kill, &neighbour, 403),
        ("POST", "/console/sign-out", &[], 403),
        ("POST", "/console/sign-out", &neighbour, 403),
        ("POST", &kill, &FORM, 303),
    ] {
        let reply = browser.send(&world, method, path, headers).await;
        assert_eq!(reply.status, expected, "{method} {path} {headers:?}: {}", reply.body);
    }
    assert_eq!(sessions(&world).await, 1);
}

#[sqlx::test]
async fn a_viewer_sees_no_kill_and_is_refused_with_a_page(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let (operator, id) = (issuer.token(), world.submit(&issuer.token(), "red").await);
    issuer.with(|issued| (issued.user, issued.groups) = ("vera".to_owned(), vec!["eng".to_owned()]));
    let mut browser = Jar::default();
    browser.sign_in(&world, &issuer).await;
    let page = browser.open(&world, &format!("/console/submissions/{id}")).await;
    assert!(page.status == 200 && !page.body.contains("class=\"danger\""));
    let refused = browser.send(&world, "POST", &format!("/console/submissions/{id}/kill"), &FORM).await;
    assert_eq!(refused.status, 403);
    for part in ["<h1>The caller may not do this</h1>", "Ask an operator of the tenant", refused.header("x-request-id")]
    {
        assert!(refused.body.contains(part), "{part}: {}", refused.body);
    }
    assert_eq!(world.get(&operator, &format!("/v1/submissions/{id}")).await.json()["state"], "QUEUED");
}

#[sqlx::test]
async fn an_api_key_is_no_session(pool: PgPool) {
    let (_issuer, world) = both(pool).await;
    let key = world.key(Role::Admin, None).await;
    let mut browser = Jar([(SESSION.to_owned(), key)].into());
    assert_eq!(browser.open(&world, "/console/submissions").await.status, 401);
}

#[sqlx::test]
async fn a_confidential_client_sends_its_secret(pool: PgPool) {
    let issuer = Issuer::start().await;
    let mut secret = NamedTempFile::new().unwrap();
    writeln!(secret, "{SECRET}").unwrap();
    let console = format!("{HTTPS}, clientSecretFile: '{}'", secret.path().display());
    let world = World::new(pool, &issuer.access(&console)).await;
    Jar::default().sign_in(&world, &issuer).await;
    std::fs::write(secret.path(), "wrong").unwrap();
    let mut browser = Jar::default();
    let request = browser.begin(&world, "").await;
    let refused = browser.answer(&world, &issuer.answer(request)).await;
    assert!(refused.status == 401 && refused.body.contains("invalid_client"), "{}", refused.body);
}

#[sqlx::test]
async fn an_issuer_that_is_away_is_answered_with_503(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    issuer.with(|issued| issued.is_away = true);
    let mut browser = Jar::default();
    let away = browser.open(&world, "/console/sign-in?issuer=corp").await;
    assert!(away.status == 503 && away.body.contains(&issuer.url()), "{}", away.body);
    assert_eq!(browser.open(&world, "/console/sign-in?issuer=other").await.status, 404);
    issuer.with(|issued| issued.is_away = false);
    let fresh = World::new(world.pool.clone(), &issuer.access(HTTPS)).await;
    browser.sign_in_briefly([&fresh, &fresh], &issuer).await;
    issuer.with(|issued| issued.is_away = true);
    let page = loop {
        let page = browser.open(&fresh, "/console/submissions").await;
        if page.status != 200 {
            break page;
        }
    };
    assert!(page.status == 503 && page.body.contains("renew"), "{}", page.body);
    issuer.with(|issued| issued.is_away = false);
    assert_eq!(browser.open(&fresh, "/console/submissions").await.status, 200, "the session outlasts the outage");
}

#[sqlx::test]
async fn a_stream_ends_with_its_session(pool: PgPool) {
    let (issuer, world) = both(pool).await;
    let mut browser = Jar::default();
    browser.sign_in(&world, &issuer).await;
    let request =
        Request::get("/v1/events").header(header::HOST, "gate.example.org").header(header::ACCEPT, "text/event-stream");
    let request = request
        .header("sec-fetch-site", "same-origin")
        .header(header::COOKIE, format!("{SESSION}={}", browser.0[SESSION]));
    let stream = world.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(stream.status(), 200);
    assert_eq!(browser.send(&world, "POST", "/console/sign-out", &FORM).await.status, 200);
    // A stream without an end would let this wait for ever.
    stream.into_body().collect().await.unwrap();
}
