//! A provider that is away.

use reqwest::Method;
use serde_json::json;
use sqlx::PgPool;

use crate::provider::{
    keycloak::Keycloak,
    realm::Realm,
    world::{World, spark_job},
};

const ME: &str = "/v1/me";

#[sqlx::test]
async fn while_the_provider_is_away_known_keys_stay_valid_and_a_new_one_is_answered_with_503(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::alone().await, 300).await).await;
    let known = world.realm.token("alice").await;
    assert_eq!(world.get(&known, ME).await.status, 200);
    world.realm.add_key(200).await;
    let new = world.realm.token("alice").await;
    world.realm.keycloak.stop().await;

    // Until the gateway may ask again, it relies on the keys of a moment ago.
    let away = world.until_other(401, &new, ME).await;
    assert_eq!((away.status, &away.body["code"]), (503, &json!("authentication-unavailable")), "{away:?}");
    assert!(away.retry_after && away.body["detail"].as_str().unwrap().contains(&world.realm.issuer()), "{away:?}");
    let created = world.send(&new, Method::POST, "/v1/submissions/create", Some(&spark_job())).await;
    assert_eq!((created.status, &created.body["action"]), (503, &json!("ErrorResponse")), "{created:?}");
    assert_eq!(world.get(&known, ME).await.status, 200);
    world.submit(&known).await;

    world.realm.keycloak.start_again().await;
    assert_eq!(world.until_other(503, &new, ME).await.status, 200);
}
