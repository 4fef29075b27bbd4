//! An OIDC issuer with the authorization code flow, and the mistakes that a real one doesn't make.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sparkgate_testing::TokenKey;
use tokio::net::TcpListener;

pub(crate) const CLIENT: &str = "sparkgate-console";
pub(crate) const SECRET: &str = "s&cret";

pub(crate) type Parameters = BTreeMap<String, String>;

#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<Issued>>,
}

/// What the issuer has issued, and what it is to do next.
pub(crate) struct Issued {
    key: TokenKey,
    /// Who signs in, and with which groups.
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
    /// How long an access token lasts, in seconds.
    pub(crate) seconds: i64,
    /// Another nonce for the ID token than that of the request.
    pub(crate) nonce: Option<String>,
    pub(crate) is_away: bool,
    /// The codes that weren't used yet, with their requests.
    codes: HashMap<String, Parameters>,
    /// The refresh tokens that are valid, each of them once.
    refresh: HashSet<String>,
    count: u64,
    pub(crate) renewals: u64,
    /// How often a refresh token was sent that isn't valid.
    pub(crate) reused: u64,
    /// The ID tokens with which sessions were ended.
    pub(crate) ended: Vec<Parameters>,
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issued = Issued {
            key: TokenKey::create("1"),
            user: "alice".to_owned(),
            groups: vec!["ops".to_owned()],
            seconds: 300,
            nonce: None,
            is_away: false,
            codes: HashMap::new(),
            refresh: HashSet::new(),
            count: 0,
            renewals: 0,
            reused: 0,
            ended: Vec::new(),
        };
        let issuer = Self { address: listener.local_addr().unwrap(), state: Arc::new(Mutex::new(issued)) };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(async |State(issuer): State<Self>| Json(issuer.with(|issued| issued.key.set()))))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/end", get(end))
            .with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        issuer
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Issued) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    /// Returns a bearer token of the user.
    pub(crate) fn token(&self) -> String {
        self.with(|issued| issued.access(&self.url()))
    }

    /// Signs the user in, and returns the parameters of the answer.
    pub(crate) fn answer(&self, request: Parameters) -> Parameters {
        assert_eq!((&*request["client_id"], &*request["response_type"]), (CLIENT, "code"));
        assert_eq!(request["code_challenge_method"], "S256");
        assert!(request["scope"].split(' ').any(|scope| scope == "openid"));
        let state = request["state"].clone();
        let code = self.with(|issued| {
            issued.count += 1;
            let code = format!("code-{}", issued.count);
            issued.codes.insert(code.clone(), request);
            code
        });
        let pairs = [("code", code), ("state", state), ("iss", self.url())];
        pairs.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Returns an access file with two users in the tenant `red`: members of `ops` are operators, others viewers.
    pub(crate) fn access(&self, console: &str) -> String {
        format!(
            "
authentication:
  oidc:
    - name: corp
      issuer: {}
      audience: sparkgate
      subjectClaim: preferred_username
      groupsClaim: groups
      leeway: 0s
      console: {{clientId: {CLIENT}, {console}}}
tenants:
  red: {{namespaces: [red], members: [{{role: operator, groups: ['corp:ops']}}, {{role: viewer, groups: ['corp:eng']}}]}}
  blue: {{namespaces: [blue]}}
limits: {{writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}}
",
            self.url()
        )
    }
}

impl Issued {
    fn access(&self, url: &str) -> String {
        let end = (Utc::now() + TimeDelta::seconds(self.seconds)).timestamp();
        self.key.sign(&json!({"iss": url, "aud": "sparkgate", "sub": "1", "preferred_username": self.user, "groups": self.groups, "exp": end}))
    }

    fn grant(&mut self, url: &str, nonce: Option<&str>) -> Value {
        self.count += 1;
        let refresh = format!("refresh-{}", self.count);
        self.refresh.insert(refresh.clone());
        let end = (Utc::now() + TimeDelta::minutes(5)).timestamp();
        let id = json!({"iss": url, "aud": CLIENT, "sub": "1", "exp": end, "nonce": nonce});
        json!({
            "access_token": self.access(url), "token_type": "Bearer", "id_token": self.key.sign(&id), "refresh_token": refresh,
        })
    }
}

async fn discovery(State(issuer): State<Issuer>) -> Result<Json<Value>, StatusCode> {
    if issuer.with(|issued| issued.is_away) {
        return Err(StatusCode::BAD_GATEWAY);
    }
    let url = issuer.url();
    Ok(Json(json!({
        "issuer": url, "jwks_uri": format!("{url}/keys"), "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"), "end_session_endpoint": format!("{url}/end"),
        "authorization_response_iss_parameter_supported": true,
    })))
}

/// Sends the browser back at once: the user has a session here.
async fn authorize(State(issuer): State<Issuer>, Query(request): Query<Parameters>) -> Redirect {
    let back = request["redirect_uri"].clone();
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(issuer.answer(request)).finish();
    Redirect::to(&format!("{back}?{query}"))
}

async fn token(State(issuer): State<Issuer>, headers: HeaderMap, body: String) -> Response {
    let form: Parameters = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let refuse = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
    if issuer.with(|issued| issued.is_away) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    // RFC 6749, section 2.3.1: both parts are encoded as in a form.
    let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("{CLIENT}:s%26cret")));
    if form["client_id"] != CLIENT || headers.get(header::AUTHORIZATION).is_some_and(|given| given != &*basic) {
        return refuse("invalid_client");
    }
    let url = issuer.url();
    issuer.with(|issued| match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some(request) = issued.codes.remove(&form["code"]) else { return refuse("invalid_grant") };
            let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
            if challenge != request["code_challenge"] || form["redirect_uri"] != request["redirect_uri"] {
                return refuse("invalid_grant");
            }
            let nonce = issued.nonce.clone().unwrap_or_else(|| request["nonce"].clone());
            Json(issued.grant(&url, Some(&nonce))).into_response()
        }
        "refresh_token" => {
            if !issued.refresh.remove(&form["refresh_token"]) {
                issued.reused += 1;
                return refuse("invalid_grant");
            }
            issued.renewals += 1;
            Json(issued.grant(&url, None)).into_response()
        }
        other => panic!("{other}"),
    })
}

impl Issued {
    /// Ends all sessions of the user.
    pub(crate) fn revoke(&mut self) {
        self.refresh.clear();
    }
}

async fn end(State(issuer): State<Issuer>, Query(request): Query<Parameters>) -> Redirect {
    let back = request["post_logout_redirect_uri"].clone();
    issuer.with(|issued| issued.ended.push(request));
    Redirect::to(&back)
}
