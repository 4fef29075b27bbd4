//! Tokens of an OIDC issuer, which is a server of these tests: discovery, keys, rotation, outages.

use std::{
    fs,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use sparkgate_testing::TokenKey;
use sqlx::PgPool;
use tokio::{net::TcpListener, sync::Notify};

use crate::access::world::World;
use crate::in_memory::Answer;

/// An issuer with one signing key at a time.
#[derive(Clone)]
struct Issuer {
    address: SocketAddr,
    state: Arc<Mutex<Keys>>,
    /// Is notified of each request for the discovery document, which is answered while the lock is free.
    asked: Arc<Notify>,
    gate: Arc<tokio::sync::Mutex<()>>,
}

struct Keys {
    key: TokenKey,
    is_away: bool,
    fetched: u32,
}

impl Issuer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let keys = Keys { key: TokenKey::create("1"), is_away: false, fetched: 0 };
        let issuer = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::new(Mutex::new(keys)),
            asked: Arc::default(),
            gate: Arc::default(),
        };
        let router = Router::new()
            .route("/realm/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys_of))
            .with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        issuer
    }

    fn url(&self) -> String {
        format!("http://{}/realm", self.address)
    }

    fn token(&self, claims: &Value) -> String {
        self.with(|keys| keys.key.sign(claims))
    }

    /// Returns a token for a member of the group `eng`.
    fn token_for(&self, subject: &str) -> String {
        let end = (Utc::now() + TimeDelta::minutes(5)).timestamp();
        self.token(&json!({
            "iss": self.url(), "aud": "sparkgate", "sub": "1234", "preferred_username": subject, "groups": ["eng"], "exp": end,
        }))
    }

    fn with<T>(&self, change: impl FnOnce(&mut Keys) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    fn access(&self) -> String {
        format!(
            "
authentication:
  oidc:
    - name: corp
      issuer: {}
      audience: sparkgate
      subjectClaim: preferred_username
      groupsClaim: groups
      clientId: sparkgate-cli
tenants:
  red:
    namespaces: [red]
    members: [{{role: submitter, groups: [\"corp:eng\"]}}, {{role: operator, subjects: [\"corp:boss\"]}}]
",
            self.url()
        )
    }
}

async fn discovery(State(issuer): State<Issuer>) -> Result<Json<Value>, StatusCode> {
    issuer.asked.notify_one();
    drop(issuer.gate.lock().await);
    if issuer.with(|keys| keys.is_away) {
        return Err(StatusCode::BAD_GATEWAY);
    }
    Ok(Json(json!({"issuer": issuer.url(), "jwks_uri": format!("http://{}/keys", issuer.address)})))
}

async fn keys_of(State(issuer): State<Issuer>) -> Json<Value> {
    issuer.with(|keys| {
        keys.fetched += 1;
        Json(keys.key.set())
    })
}

/// Repeats a request until the answer has another status.
async fn until_other(status: u16, ask: impl AsyncFn() -> Answer) -> Answer {
    loop {
        let answer = ask().await;
        if answer.status != status {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[sqlx::test]
async fn a_token_of_the_issuer_is_its_subject_with_its_groups(pool: PgPool) {
    let issuer = Issuer::start().await;
    let world = World::new(pool, &issuer.access()).await;
    let token = issuer.token_for("alice");
    let me = world.get(&token, "/v1/me").await.json();
    assert_eq!((&me["subject"], &me["groups"]), (&json!("corp:alice"), &json!(["corp:eng"])));
    assert_eq!(me["tenants"][0]["role"], "submitter");
    let id = world.submit(&token, "red").await;
    let submission = world.get(&token, &format!("/v1/submissions/{id}")).await.json();
    assert_eq!((&submission["tenant"], &submission["principal"]), (&json!("red"), &json!("corp:alice")));
    assert_eq!(world.get(&issuer.token_for("boss"), "/v1/me").await.json()["tenants"][0]["role"], "operator");
    assert_eq!(issuer.with(|keys| keys.fetched), 1, "the keys are kept");
    let login = world.send(None, "GET", "/v1/login", None).await.json();
    assert_eq!(login, json!({"issuers": [{"name": "corp", "issuer": issuer.url(), "clientId": "sparkgate-cli"}]}));
}

#[sqlx::test]
async fn a_wrong_token_is_refused_with_its_reason(pool: PgPool) {
    let issuer = Issuer::start().await;
    let world = World::new(pool, &issuer.access()).await;
    let now = Utc::now().timestamp();
    let claims = |change: &dyn Fn(&mut Value)| {
        let mut claims = json!({
            "iss": issuer.url(), "aud": "sparkgate", "preferred_username": "alice", "exp": now + 300,
        });
        change(&mut claims);
        issuer.token(&claims)
    };
    let other = Issuer::start().await;
    let forged = {
        let claims = json!({"iss": issuer.url(), "aud": "sparkgate", "preferred_username": "boss", "exp": now + 300});
        other.token(&claims)
    };
    for (token, reason) in [
        (claims(&|claims| claims["exp"] = json!(now - 3600)), "expired"),
        (claims(&|claims| claims["nbf"] = json!(now + 3600)), "not valid yet"),
        (claims(&|claims| claims["aud"] = json!("other")), "another audience"),
        (claims(&|claims| claims["iss"] = json!("https://other.example.org")), "no issuer that this gateway accepts"),
        (claims(&|claims| drop(claims.as_object_mut().unwrap().remove("preferred_username"))), "lacks a claim"),
        (forged, "signature"),
    ] {
        let answer = world.get(&token, "/v1/me").await;
        assert!(answer.status == 401 && answer.body.contains(reason), "{reason}: {answer:?}");
    }
}

#[sqlx::test]
async fn while_the_issuer_is_away_known_keys_stay_valid_and_without_keys_the_answer_is_503(pool: PgPool) {
    let issuer = Issuer::start().await;
    let world = World::new(pool, &issuer.access()).await;
    issuer.with(|keys| keys.is_away = true);
    let answer = world.get(&issuer.token_for("alice"), "/v1/submissions").await;
    assert_eq!((answer.status, &answer.json()["code"]), (503, &json!("authentication-unavailable")), "{answer:?}");
    assert!(answer.body.contains(&issuer.url()) && answer.headers.contains_key("retry-after"), "{answer:?}");
    issuer.with(|keys| keys.is_away = false);
    assert_eq!(until_other(503, async || world.get(&issuer.token_for("alice"), "/v1/me").await).await.status, 200);
    issuer.with(|keys| keys.is_away = true);
    assert_eq!(world.get(&issuer.token_for("alice"), "/v1/me").await.status, 200);
}

#[sqlx::test]
async fn a_key_that_the_gateway_can_not_fetch_is_answered_with_503_and_not_with_401(pool: PgPool) {
    let issuer = Issuer::start().await;
    let world = World::new(pool, &issuer.access()).await;
    let before = issuer.token_for("alice");
    assert_eq!(world.get(&before, "/v1/me").await.status, 200);
    issuer.with(|keys| (keys.key, keys.is_away) = (TokenKey::create("2"), true));
    let after = issuer.token_for("alice");
    // Until the gateway may ask again, it relies on the keys of a moment ago.
    let answer = until_other(401, async || world.get(&after, "/v1/me").await).await;
    assert_eq!((answer.status, &answer.json()["code"]), (503, &json!("authentication-unavailable")), "{answer:?}");
    assert!(answer.body.contains(&issuer.url()) && answer.headers.contains_key("retry-after"), "{answer:?}");
    assert_eq!(world.get(&before, "/v1/me").await.status, 200, "its key is known");
    issuer.with(|keys| keys.is_away = false);
    assert_eq!(until_other(503, async || world.get(&after, "/v1/me").await).await.status, 200);
}

#[sqlx::test]
async fn a_client_that_disconnects_does_not_end_the_fetch_of_the_keys_for_others(pool: PgPool) {
    let issuer = Issuer::start().await;
    let world = World::new(pool, &issuer.access()).await;
    let token = issuer.token_for("alice");
    let gate = issuer.gate.lock().await;
    tokio::select! {
        answer = world.get(&token, "/v1/me") => panic!("answered without keys: {answer:?}"),
        () = issuer.asked.notified() => {}
    }
    drop(gate);
    assert_eq!(world.get(&token, "/v1/me").await.status, 200);
}

#[sqlx::test]
async fn a_token_that_was_accepted_is_verified_again_after_a_change_of_the_access_file(pool: PgPool) {
    let issuer = Issuer::start().await;
    let world = World::new(pool, &issuer.access()).await;
    let token = issuer.token_for("alice");
    for _ in 0..2 {
        assert_eq!(world.get(&token, "/v1/me").await.status, 200);
    }
    let _guard = world.follow_access_file();
    fs::write(world.file.path(), issuer.access().replace("audience: sparkgate", "audience: other")).unwrap();
    let answer = until_other(200, async || world.get(&token, "/v1/me").await).await;
    assert!(answer.status == 401 && answer.body.contains("another audience"), "{answer:?}");
    assert_eq!(issuer.with(|keys| keys.fetched), 1, "the keys are kept");
}

#[sqlx::test]
async fn new_keys_of_the_issuer_are_fetched_when_a_token_names_one(pool: PgPool) {
    let issuer = Issuer::start().await;
    let world = World::new(pool, &issuer.access()).await;
    let before = issuer.token_for("alice");
    assert_eq!(world.get(&before, "/v1/me").await.status, 200);
    issuer.with(|keys| keys.key = TokenKey::create("2"));
    let after = issuer.token_for("alice");
    // The keys were fetched a moment ago: tokens with invented keys must not make the gateway ask for each of them.
    assert_eq!(world.get(&after, "/v1/me").await.status, 401);
    assert_eq!(issuer.with(|keys| keys.fetched), 1);
    let fresh = World::new(world.pool.clone(), &issuer.access()).await;
    assert_eq!(fresh.get(&after, "/v1/me").await.status, 200);
    assert_eq!(fresh.get(&before, "/v1/me").await.status, 401, "its key is withdrawn");
}
