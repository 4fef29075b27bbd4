//! Tokens that end while a stream is open.

use std::collections::BTreeSet;

use chrono::Utc;
use sqlx::PgPool;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    time::{Duration, timeout},
};

use crate::provider::{
    keycloak::Keycloak,
    realm::Realm,
    world::{World, line},
};

/// How long a token is valid: long enough for a busy machine to open a stream with it.
const SECONDS: u32 = 8;

#[sqlx::test]
async fn a_stream_ends_with_its_token(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, SECONDS).await).await;
    let asked = Utc::now();
    let token = world.realm.token("alice").await;
    let mut stream = world.events(&token).await;
    let ended = async { while stream.chunk().await.unwrap().is_some() {} };
    timeout(Duration::from_secs(60), ended).await.unwrap();
    assert!((Utc::now() - asked).num_seconds() >= i64::from(SECONDS) - 1, "not before its token");
    let answer = world.get(&token, "/v1/me").await;
    assert!(answer.status == 401 && answer.body["detail"].as_str().unwrap().contains("expired"), "{answer:?}");
}

#[sqlx::test]
async fn the_client_continues_a_stream_with_a_renewed_token_until_its_session_is_revoked(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, SECONDS).await).await;
    world.log_in("alice").await;
    let mut child = world.command(&["events"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    world.until_answered("/v1/events", 1).await;
    let mut seen = Vec::new();
    for streams in [2, 3] {
        let id = world.submit(&world.realm.token("alice").await).await;
        let is_new = |line: &String| line.contains(&id) && line.contains("QUEUED");
        while !seen.iter().any(is_new) {
            seen.push(line(&mut lines).await);
        }
        world.until_answered("/v1/events", streams).await;
    }
    world.realm.revoke("alice").await;
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        seen.push(line);
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(1), "{said}");
    assert!(said.contains("invalid_grant") && said.contains("run `sparkgate login --context prod`"), "{said}");
    // No event is lost or repeated when a stream is continued.
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "{seen:#?}");
    assert_eq!(seen.iter().filter(|line| line.contains("QUEUED")).count(), 2, "{seen:#?}");
}
