//! From the credentials of a request to its principal.

use std::io::Write;

use allocation_counter::measure;
use axum::{Json, Router};
use chrono::{TimeDelta, Utc};
use futures::FutureExt;
use secrecy::ExposeSecret;
use serde_json::json;
use sparkgate::{
    access::Role,
    service::{AccessFile, Caps, Credentials, KeyRequest, Service, Settings},
    store::{DatabaseSettings, Store},
};
use sparkgate_testing::{TokenKey, database};
use sqlx::PgPool;
use tempfile::NamedTempFile;
use tokio::{net::TcpListener, runtime::Builder};

use crate::{
    expected::{Costs, compare, median},
    world,
};

const TIMES: usize = 15;

#[sqlx::test]
async fn cost_of_knowing_a_caller_is_as_expected(pool: PgPool) {
    let url = database::url(&pool);
    // Allocations are counted per thread, so everything has to run on one thread.
    let counted = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (service, credentials, _file) = runtime.block_on(prepared(&url));
        credentials.map(|(name, token)| {
            let caller = Credentials {
                bearer: Some(&token),
                certificate: None,
                header: &|_| Ok(None),
                session: None,
                address: None,
            };
            // The first call reads the key, or fetches the keys of the issuer. Later ones wait for nothing.
            runtime.block_on(service.authenticator.authenticate(&caller)).unwrap();
            let again = || drop(service.authenticator.authenticate(&caller).now_or_never().unwrap().unwrap());
            (name, median((0..TIMES).map(|_| measure(again)).collect()))
        })
    });
    for (name, costs) in counted.await.unwrap() as [(&str, Costs); 2] {
        compare(&format!("authenticate {name}"), costs, "");
    }
}

/// Returns a gateway with an access file, and the credentials to measure.
async fn prepared(url: &str) -> (Service, [(&'static str, String); 2], NamedTempFile) {
    let issued = TokenKey::create("1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let keys = issued.set();
    let router = Router::new().fallback(async move || Json(keys));
    tokio::spawn(axum::serve(listener, router).into_future());
    let mut file = NamedTempFile::new().unwrap();
    write!(
        file,
        "authentication: {{oidc: [{{issuer: '{issuer}', jwksUri: '{issuer}/keys', audience: sparkgate, groupsClaim: groups}}]}}\n\
         tenants: {{red: {{namespaces: [red]}}}}\n"
    )
    .unwrap();
    let settings = Settings { spark: world::spark(), outcome_finalizer: true, caps: Caps::default(), kept_log: 0 };
    let access = AccessFile::open(file.path().to_owned(), settings).unwrap();
    let database = DatabaseSettings { url: url.to_owned(), max_connections: 16 };
    let store = Store::connect(&database).await.unwrap();
    let service = Service::new(store, world::nowhere(), access).await.unwrap();
    let request = KeyRequest { name: "a".to_owned(), tenant: None, role: Role::Admin, expires_in: None };
    let key = service.api_keys.create_by_operator(&request).await.unwrap();
    let end = (Utc::now() + TimeDelta::hours(1)).timestamp();
    let claims = json!({"iss": issuer, "aud": "sparkgate", "sub": "1234", "exp": end, "groups": ["eng", "staff"],
        "preferred_username": "alice", "name": "Alice Example", "email": "alice@example.org"});
    let credentials = [("an API key", key.text.expose_secret().to_owned()), ("a token", issued.sign(&claims))];
    (service, credentials, file)
}
