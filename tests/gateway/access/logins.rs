//! Bad credentials: what they cost, and whom they hinder. Real connections, because addresses are counted; the API server is the one
//! in memory, with reviews of tokens that are counted.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{Request, header},
    routing::post,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    sandbox::apiserver::Apiserver,
    server::{ServerSettings, serve},
    service::{Credentials, EncryptionKeys, Session},
    store::Store,
};
use sqlx::PgPool;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::access::world::World;
use crate::in_memory::client_of;

const FILE: &str = "
authentication: {kubernetes: {audience: sparkgate}}
tenants: {red: {namespaces: [red], members: [{role: viewer, subjects: ['kubernetes:alice']}]}}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 10/min}
";

/// What the API server knows of tokens.
#[derive(Clone, Default)]
struct Reviews {
    made: Arc<AtomicUsize>,
    /// The tokens that it was asked about.
    tokens: Arc<Mutex<Vec<String>>>,
    withdrawn: Arc<AtomicBool>,
}

async fn review(State(reviews): State<Reviews>, Json(mut review): Json<Value>) -> Json<Value> {
    reviews.made.fetch_add(1, SeqCst);
    let token = review["spec"]["token"].as_str().unwrap().to_owned();
    let is_good = token.contains("good") || token.contains('.');
    reviews.tokens.lock().unwrap().push(token);
    review["status"] = match is_good && !reviews.withdrawn.load(SeqCst) {
        true => json!({"authenticated": true, "audiences": ["sparkgate"], "user": {"username": "alice"}}),
        false => json!({"authenticated": false}),
    };
    Json(review)
}

/// A gateway that listens.
struct Gateway {
    world: World,
    reviews: Reviews,
    address: SocketAddr,
    _running: DropGuard,
}

impl Gateway {
    async fn new(pool: PgPool) -> Self {
        let reviews = Reviews::default();
        let cluster = Apiserver::new(CancellationToken::new()).router();
        let cluster = Router::new()
            .route("/apis/authentication.k8s.io/v1/tokenreviews", post(review))
            .with_state(reviews.clone())
            .fallback_service(cluster);
        let client = client_of(cluster);
        let world = World::of(Store::new(pool.clone()), pool, FILE, client, EncryptionKeys::none()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(serve(listener, world.router.clone(), ServerSettings::default(), stop.clone()));
        Self { world, reviews, address, _running: stop.drop_guard() }
    }

    /// Sends requests with these tokens over one connection from an address, and returns their statuses.
    async fn ask(&self, from: &str, tokens: &[String]) -> Vec<u16> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut statuses = Vec::new();
        for token in tokens {
            let request = Request::get("/v1/me").header(header::HOST, "127.0.0.1");
            let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
            statuses.push(answer.status().as_u16());
            answer.into_body().collect().await.unwrap();
        }
        statuses
    }
}

#[sqlx::test]
async fn bad_credentials_of_one_address_cost_little_and_hinder_no_known_caller(pool: PgPool) {
    const CONNECTIONS: usize = 20;
    let gateway = Gateway::new(pool).await;
    let good = [gateway.world.key(Role::Viewer, Some("red")).await, "good".to_owned()];
    assert_eq!(gateway.ask("127.0.0.1", &good).await, [200, 200]);
    let bad: Vec<Vec<String>> =
        (0..CONNECTIONS).map(|one| (0..100).map(|other| format!("bad-{one}-{other}")).collect()).collect();
    let attack = join_all(bad.iter().map(|tokens| gateway.ask("127.0.0.1", tokens)));
    let repeated: Vec<String> = good.iter().cycle().take(100).cloned().collect();
    // Behind the same address, and behind another one with a token that is new here.
    let known = gateway.ask("127.0.0.1", &repeated);
    let elsewhere = vec!["good from elsewhere".to_owned()];
    let (refused, known, elsewhere) = tokio::join!(attack, known, gateway.ask("127.0.0.2", &elsewhere));
    assert!(refused.iter().flatten().all(|status| [401, 429].contains(status)));
    let checked = gateway.reviews.made.load(SeqCst);
    assert!(checked < 60, "{checked} reviews of 2,000 bad tokens");
    assert!(known.iter().all(|status| *status == 200), "{known:?}");
    assert_eq!(elsewhere, [200]);
    // A new one of the address has to wait, and isn't even looked at.
    assert_eq!(gateway.ask("127.0.0.1", &["good but new".to_owned()]).await, [429]);
    assert!(!gateway.reviews.tokens.lock().unwrap().iter().any(|token| token == "good but new"));
}

#[sqlx::test]
async fn a_bad_token_is_reviewed_once_however_often_it_is_sent(pool: PgPool) {
    let gateway = Gateway::new(pool).await;
    let again = vec!["bad".to_owned(); 5];
    let answers = join_all((0..2).map(|_| gateway.ask("127.0.0.1", &again))).await;
    assert!(answers.iter().flatten().all(|status| *status == 401), "{answers:?}");
    assert_eq!(gateway.reviews.made.load(SeqCst), 1);
    let claims = json!({"sub": "system:serviceaccount:ci:airflow", "aud": ["another"], "exp": 4_000_000_000_i64});
    assert_eq!(gateway.ask("127.0.0.2", &[token(&claims)]).await, [401]);
    assert_eq!(gateway.reviews.made.load(SeqCst), 1, "the token says that it is for another service");
}

/// Returns a token with these claims, whose signature only the API server would verify.
fn token(claims: &Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{}", part(&json!({"alg": "RS256"})), part(claims), BASE64_URL_SAFE_NO_PAD.encode("signature"))
}

async fn session(gateway: &Gateway, token: &str) -> Session {
    let credentials =
        Credentials { bearer: Some(token), certificate: None, header: &|_| Ok(None), session: None, address: None };
    let caller = gateway.world.service.authenticator.authenticate(&credentials).await.unwrap();
    Session::new(caller.principal, caller.tenancy, None, "").with_review(caller.reviewed)
}

#[sqlx::test]
async fn what_a_token_of_kubernetes_opened_ends_with_the_token(pool: PgPool) {
    let gateway = Gateway::new(pool).await;
    let authenticator = gateway.world.service.authenticator.clone();
    // Its claims bound it, also while the API server says nothing. The clocks may differ by five minutes.
    let end = chrono::Utc::now() - chrono::TimeDelta::seconds(299);
    let ending = session(&gateway, &token(&json!({"sub": "alice", "exp": end.timestamp()}))).await;
    authenticator.clone().end_of(ending).await;
    let caller = session(&gateway, "good").await;
    let end = tokio::spawn(authenticator.end_of(caller));
    gateway.reviews.withdrawn.store(true, SeqCst);
    tokio::time::timeout(Duration::from_secs(60), end).await.expect("the stream ends").unwrap();
}

#[sqlx::test]
async fn a_credential_that_occurs_twice_counts_for_nobody(pool: PgPool) {
    let gateway = Gateway::new(pool).await;
    let key = gateway.world.key(Role::Viewer, Some("red")).await;
    for (first, second) in [(key.as_str(), "good"), ("good", key.as_str()), (&key, &key)] {
        let request = Request::get("/v1/me").header(header::HOST, "gateway");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {first}"));
        let request = request.header(header::AUTHORIZATION, format!("Bearer {second}")).body(Body::empty());
        let answer = gateway.world.answer(request.unwrap()).await;
        assert_eq!(answer.status, 401, "{answer:?}");
        assert!(answer.body.contains("authorization more than once"), "{answer:?}");
    }
}

#[sqlx::test]
async fn the_id_of_a_key_alone_is_no_use_of_the_key(pool: PgPool) {
    let gateway = Gateway::new(pool.clone()).await;
    let key = gateway.world.key(Role::Viewer, Some("red")).await;
    let store = Store::new(pool.clone());
    let id = &key[3..19];
    assert!(store.valid_api_key(id, &[0; 32]).await.unwrap().is_none());
    let used = || sqlx::query_scalar::<_, bool>("SELECT last_used_at IS NOT NULL FROM api_keys").fetch_one(&pool);
    assert!(!used().await.unwrap());
    assert_eq!(gateway.world.get(&key, "/v1/me").await.status, 200);
    assert!(used().await.unwrap());
}

#[sqlx::test]
async fn bytes_count_as_they_arrive(pool: PgPool) {
    let world = World::new(
        pool,
        "
authentication: {}
tenants: {red: {namespaces: [red]}}
limits: {writes: 100000/s, reads: 100000/s, bytes: 1MiB/h}
",
    )
    .await;
    let key = world.key(Role::Viewer, Some("red")).await;
    let send = async |bytes: usize, content_type: &str| {
        let parts = (0..bytes >> 16).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 1 << 16])));
        let request = Request::post("/v1/submissions").header(header::HOST, "gateway");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        let request = request.header(header::CONTENT_TYPE, content_type);
        let body = Body::from_stream(futures::stream::iter(parts.collect::<Vec<_>>()));
        world.answer(request.body(body).unwrap()).await
    };
    assert_eq!(send(512 << 10, "application/json").await.status, 400);
    let answer = send(2 << 20, "application/json").await;
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(answer.body.contains("`bytes`") && answer.headers.contains_key("retry-after"), "{answer:?}");
    let answer = send(2 << 20, "multipart/form-data; boundary=x").await;
    assert!([403, 429].contains(&answer.status), "a viewer uploads nothing: {answer:?}");
}
