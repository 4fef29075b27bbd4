//! Keys that the provider changes.

use sqlx::PgPool;

use crate::provider::{keycloak::Keycloak, realm::Realm, world::World};

const ME: &str = "/v1/me";

#[sqlx::test]
async fn a_new_key_is_fetched_and_a_token_of_a_removed_key_is_refused(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, 300).await).await;
    let first = world.realm.active_key().await;
    let before = world.realm.token("alice").await;
    assert_eq!(world.get(&before, ME).await.status, 200);

    // The old key is still published, so its tokens stay valid.
    world.realm.add_key(200).await;
    let between = world.realm.token("alice").await;
    assert_eq!(world.until_other(401, &between, ME).await.status, 200);
    assert_eq!(world.get(&before, ME).await.status, 200);

    world.realm.remove_key(&first).await;
    world.realm.add_key(300).await;
    let after = world.realm.token("alice").await;
    assert_eq!(world.until_other(401, &after, ME).await.status, 200);
    assert_eq!(world.get(&between, ME).await.status, 200);
    let refused = world.get(&before, ME).await;
    assert!(
        refused.status == 401 && refused.body["detail"].as_str().unwrap().contains("key is unknown"),
        "{refused:?}"
    );
}
