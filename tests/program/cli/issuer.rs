//! A fake `OpenID` provider, and a gateway that trusts it.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

use crate::cli::{
    played::{Asked, Played, Reply, json_answer, submission},
    user::User,
};

pub(crate) const ID: &str = "driver-20260102030405-0001";

/// Starts a provider. `token` answers at its token endpoint.
pub(crate) fn issuer(token: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Played {
    Played::new(move |asked| {
        let url = format!("http://{}", asked.headers["host"]);
        match asked.what.as_str() {
            "GET /.well-known/openid-configuration" => json_answer(200, &metadata(&url)),
            "POST /device" => json_answer(200, &device(&url)),
            "POST /token" => token(asked),
            "POST /revoke" => Reply::Answer { status: 200, headers: Vec::new(), body: String::new() },
            other => panic!("{other}"),
        }
    })
}

pub(crate) fn metadata(url: &str) -> Value {
    json!({"issuer": url, "token_endpoint": format!("{url}/token"),
        "device_authorization_endpoint": format!("{url}/device"), "revocation_endpoint": format!("{url}/revoke")})
}

/// A code whose provider allows polls without a pause.
pub(crate) fn device(url: &str) -> Value {
    json!({"device_code": "d3vice", "user_code": "ABCD-EFGH", "verification_uri": format!("{url}/verify"),
        "verification_uri_complete": format!("{url}/verify?code=ABCD-EFGH"), "expires_in": 600, "interval": 0})
}

/// Returns tokens that end after an hour.
pub(crate) fn grant(number: usize) -> Reply {
    json_answer(
        200,
        &json!({"access_token": format!("access-{number}"), "refresh_token": format!("refresh-{number}"),
            "token_type": "Bearer", "expires_in": 3600}),
    )
}

pub(crate) fn refusal(error: &str) -> Reply {
    json_answer(400, &json!({"error": error, "error_description": "said the provider"}))
}

/// Starts a gateway that trusts providers, by name and URL.
pub(crate) fn gateway(issuers: &[(&str, String)]) -> Played {
    let issuers: Vec<Value> =
        issuers.iter().map(|(name, url)| json!({"name": name, "issuer": url, "clientId": "sparkgate-cli"})).collect();
    Played::new(move |asked| match asked.what.as_str() {
        "GET /v1/login" => json_answer(200, &json!({ "issuers": issuers })),
        "GET /v1/me" => json_answer(200, &json!({"subject": "corp:alice", "groups": [], "tenants": []})),
        _ => json_answer(200, &submission(ID, "RUNNING")),
    })
}

/// Returns a user who has logged in to the gateway. The access token ends after this time.
pub(crate) fn logged_in(gateway: &Played, issuer: &str, ends_after: TimeDelta) -> User {
    let user = User::with_context("prod", &gateway.url());
    let end = (Utc::now() + ends_after).to_rfc3339();
    let text = format!(
        "logins:\n  prod:\n    server: {}\n    issuer: {issuer}\n    clientId: sparkgate-cli\n    accessToken: access-0\n    \
         refreshToken: refresh-0\n    expiresAt: {end}\n",
        gateway.url()
    );
    user.write(".config/sparkgate/credentials.yaml", &text, 0o600);
    user
}

/// Returns the tokens of the requests for submissions.
pub(crate) fn tokens(gateway: &Played) -> Vec<Option<String>> {
    let asked = gateway.asked().into_iter().filter(|asked| asked.what.contains("/submissions/"));
    asked.map(|asked| asked.headers.get("authorization").cloned()).collect()
}
