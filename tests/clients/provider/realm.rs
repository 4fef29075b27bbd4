//! A realm of Keycloak: its users, its tokens and its keys, through the admin API
//! (<https://www.keycloak.org/docs-api/26.4.0/rest-api/index.html>).

use form_urlencoded::Serializer;
use reqwest::{Client, Method, RequestBuilder, header};
use rustls::crypto::ring;
use serde_json::{Value, json};
use tokio::{
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::provider::keycloak::{ADMINISTRATOR, Keycloak};

pub(crate) const CLIENT: &str = "sparkgate-cli";
pub(crate) const CONSOLE: &str = "sparkgate-console";
pub(crate) const PASSWORD: &str = "correct horse";

/// How long the administrator's token is used; it ends after a minute.
const FRESH: Duration = Duration::from_secs(40);

/// The groups of the realm.
const GROUPS: [&str; 2] = ["eng", "ops"];

pub(crate) struct Realm {
    pub(crate) keycloak: Keycloak,
    http: Client,
    name: String,
    /// The administrator's token, and since when it is valid.
    token: Mutex<Option<(String, Instant)>>,
}

/// Returns a client that follows no redirects.
pub(crate) fn http() -> Client {
    // Fails if this process has one already.
    let _ = ring::default_provider().install_default();
    Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).tls_certs_only([]).build().unwrap()
}

impl Realm {
    /// Creates a realm with alice, who is in the group `eng`, and bob, who is in none. Its access tokens end after some seconds.
    pub(crate) async fn create(keycloak: Keycloak, seconds: u32) -> Self {
        let name = format!("r{}", uuid::Uuid::new_v4().simple());
        let realm = Self { keycloak, http: http(), name, token: Mutex::default() };
        let groups: Vec<Value> = GROUPS.iter().map(|name| json!({ "name": name })).collect();
        let settings = json!({
            "realm": realm.name, "enabled": true, "accessTokenLifespan": seconds, "oauth2DevicePollingInterval": 1,
            "groups": groups,
            // Passwords are not what is tested: a hash may be cheap.
            "passwordPolicy": "hashAlgorithm(pbkdf2-sha256) and hashIterations(1)",
        });
        realm.call(Method::POST, "/admin/realms", Some(&settings)).await;
        // A token has the rights of the realms that existed when it was issued.
        *realm.token.lock().await = None;
        realm.admin(Method::POST, "/clients", Some(&client())).await;
        for (user, groups) in [("alice", &["/eng"][..]), ("bob", &[])] {
            realm.admin(Method::POST, "/users", Some(&person(user, groups))).await;
        }
        realm
    }

    /// Creates the confidential client of a console, as docs/operate/access.md describes it.
    pub(crate) async fn add_console(&self, url: &str, secret: &str) {
        let client = json!({
            "clientId": CONSOLE, "publicClient": false, "secret": secret, "standardFlowEnabled": true,
            "redirectUris": [format!("{url}/console/sign-in/callback")],
            "attributes": {
                "pkce.code.challenge.method": "S256", "post.logout.redirect.uris": format!("{url}/console/signed-out"),
            },
            "protocolMappers": mappers(),
        });
        self.admin(Method::POST, "/clients", Some(&client)).await;
    }

    /// Ends all sessions of a user's browsers.
    pub(crate) async fn log_out(&self, user: &str) {
        let user = self.user(user).await;
        self.admin(Method::POST, &format!("/users/{user}/logout"), None).await;
    }

    pub(crate) fn issuer(&self) -> String {
        format!("{}/realms/{}", self.keycloak.url(), self.name)
    }

    /// Moves a user from its group to another.
    pub(crate) async fn move_user(&self, user: &str, from: &str, to: &str) {
        let (user, groups) = (self.user(user).await, self.admin(Method::GET, "/groups", None).await);
        let id = |name: &str| {
            let mut groups = groups.as_array().unwrap().iter();
            groups.find(|group| group["name"] == name).unwrap()["id"].as_str().unwrap().to_owned()
        };
        self.admin(Method::DELETE, &format!("/users/{user}/groups/{}", id(from)), None).await;
        self.admin(Method::PUT, &format!("/users/{user}/groups/{}", id(to)), None).await;
    }

    /// Returns what the token endpoint grants to a user with a password: an access token and a refresh token.
    pub(crate) async fn grant(&self, user: &str) -> Value {
        let form = [
            ("grant_type", "password"),
            ("client_id", CLIENT),
            ("username", user),
            ("password", PASSWORD),
            ("scope", "openid profile offline_access"),
        ];
        let url = format!("{}/protocol/openid-connect/token", self.issuer());
        sent(self.http.post(url), &form).await
    }

    /// Returns an access token of a user.
    pub(crate) async fn token(&self, user: &str) -> String {
        self.grant(user).await["access_token"].as_str().unwrap().to_owned()
    }

    /// Returns the ids of a user's sessions that outlive the browser's, which are those of `offline_access`.
    pub(crate) async fn sessions(&self, user: &str) -> Vec<String> {
        let (user, clients) =
            (self.user(user).await, self.admin(Method::GET, "/clients?clientId=sparkgate-cli", None).await);
        let client = clients[0]["id"].as_str().unwrap();
        let sessions = self.admin(Method::GET, &format!("/users/{user}/offline-sessions/{client}"), None).await;
        let ids = sessions.as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap().to_owned());
        ids.collect()
    }

    /// Ends all sessions of a user.
    pub(crate) async fn revoke(&self, user: &str) {
        for session in self.sessions(user).await {
            self.admin(Method::DELETE, &format!("/sessions/{session}?isOffline=true"), None).await;
        }
    }

    /// Creates a key, which signs all tokens from now on. The earlier keys stay published.
    pub(crate) async fn add_key(&self, priority: u32) {
        let key = json!({"name": format!("key-{priority}"), "providerId": "rsa-generated",
            "providerType": "org.keycloak.keys.KeyProvider",
            "config": {"priority": [priority.to_string()], "enabled": ["true"], "active": ["true"],
                "algorithm": ["RS256"], "keySize": ["2048"]}});
        self.admin(Method::POST, "/components", Some(&key)).await;
    }

    /// Returns the key that signs tokens, as its provider's id.
    pub(crate) async fn active_key(&self) -> String {
        let keys = self.admin(Method::GET, "/keys", None).await;
        let kid = &keys["active"]["RS256"];
        let key = keys["keys"].as_array().unwrap().iter().find(|key| key["kid"] == *kid).unwrap();
        key["providerId"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn remove_key(&self, key: &str) {
        self.admin(Method::DELETE, &format!("/components/{key}"), None).await;
    }

    async fn user(&self, name: &str) -> String {
        let users = self.admin(Method::GET, &format!("/users?exact=true&username={name}"), None).await;
        users[0]["id"].as_str().unwrap().to_owned()
    }

    async fn admin(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        self.call(method, &format!("/admin/realms/{}{path}", self.name), body).await
    }

    /// Calls the admin API.
    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let url = format!("{}{path}", self.keycloak.url());
        let mut request = self.http.request(method.clone(), url).bearer_auth(self.administrator().await);
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
        }
        answered(&format!("{method} {path}"), request).await
    }

    /// Returns a token of the administrator.
    async fn administrator(&self) -> String {
        let mut token = self.token.lock().await;
        if let Some((token, _)) = token.as_ref().filter(|(_, since)| since.elapsed() < FRESH) {
            return token.clone();
        }
        let [user, password] = ADMINISTRATOR;
        let form = [("grant_type", "password"), ("client_id", "admin-cli"), ("username", user), ("password", password)];
        let url = format!("{}/realms/master/protocol/openid-connect/token", self.keycloak.url());
        let since = Instant::now();
        let grant = sent(self.http.post(url), &form).await;
        token.insert((grant["access_token"].as_str().unwrap().to_owned(), since)).0.clone()
    }
}

async fn sent(request: RequestBuilder, form: &[(&str, &str)]) -> Value {
    let form = Serializer::new(String::new()).extend_pairs(form).finish();
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
    answered("POST of a form", request).await
}

async fn answered(what: &str, request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert!(status.is_success(), "{what}: {status}: {text}");
    if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
}

/// Returns the client of `sparkgate login`, as docs/operate/access.md describes it: public, with the device flow, and with the gateway as
/// audience of its tokens.
fn client() -> Value {
    json!({
        "clientId": CLIENT, "publicClient": true, "standardFlowEnabled": false, "directAccessGrantsEnabled": true,
        "attributes": {"oauth2.device.authorization.grant.enabled": "true"},
        "protocolMappers": mappers(),
    })
}

fn mappers() -> Value {
    let mapper = |name: &str, config: Value| json!({"name": name, "protocol": "openid-connect", "protocolMapper": format!("oidc-{name}-mapper"), "config": config});
    json!([
        mapper("audience", json!({"included.custom.audience": "sparkgate", "access.token.claim": "true"})),
        mapper("group-membership", json!({"claim.name": "groups", "full.path": "false", "access.token.claim": "true"})),
    ])
}

fn person(name: &str, groups: &[&str]) -> Value {
    json!({"username": name, "enabled": true, "firstName": name, "lastName": "Example",
        "email": format!("{name}@example.org"), "emailVerified": true, "groups": groups,
        "credentials": [{"type": "password", "value": PASSWORD, "temporary": false}]})
}
