//! Sessions that members of a tenant share.

use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::PgPool;

use super::{
    Driver, named, open,
    place::{Place, status},
};

/// Members of `red` may share sessions, those of `blue` may not.
const ONE_SHARES: &str = "
authentication: {}
tenants:
  red: {namespaces: [red, red-batch], sessions: {shared: true}}
  blue: {namespaces: [blue]}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}
";

fn shared(name: &str) -> Value {
    let mut body = named(name);
    body["shared"] = json!(true);
    body
}

#[sqlx::test]
async fn members_of_the_tenant_connect_to_a_shared_session_and_others_do_not_know_it(pool: PgPool) {
    let (place, driver) = (Place::with_access(pool, ONE_SHARES).await, Driver::start().await);
    let id = place.running_as(&driver, shared("team")).await;
    let of = async |key: &str| status(&place.call(key, &id, "Config", b"").await);
    let other = place.world.key(Role::Submitter, Some("red")).await;
    for key in [&place.key, &other] {
        assert_eq!(of(key).await.0, "0");
    }
    // A viewer sees it, and may run nothing in it.
    let (code, message) = of(&place.world.key(Role::Viewer, Some("red")).await).await;
    assert!(code == "7" && message.contains("submitter"), "{code} {message}");
    let foreign = place.world.key(Role::Operator, Some("blue")).await;
    let (code, message) = of(&foreign).await;
    assert!(code == "5" && message.contains("you have no session"), "{code} {message}");
    assert_eq!(place.world.get(&foreign, &format!("/v1/sessions/{id}")).await.status, 404);
    assert_eq!(driver.seen().len(), 2);
    // A session that isn't shared stays that of its principal.
    let own = place.running(&driver).await;
    assert_eq!(status(&place.call(&other, &own, "Config", b"").await).0, "5");
    let page = place.world.get(&other, "/console/sessions").await.body;
    assert!(page.contains("shared in tenant <bdi>red</bdi>") && page.matches("sc://").count() == 1, "{page}");
}

#[sqlx::test]
async fn a_shared_session_is_found_by_tenant_and_name_beside_sessions_of_principals(pool: PgPool) {
    let place = Place::with_access(pool, ONE_SHARES).await;
    let own = open(&place, &place.key, &named("x")).await;
    let first = open(&place, &place.key, &shared("x")).await;
    assert_eq!((own.status, first.status, &first.json()["shared"]), (201, 201, &json!(true)), "{}", first.body);
    assert_ne!(own.json()["id"], first.json()["id"]);
    let other = place.world.key(Role::Submitter, Some("red")).await;
    // With another namespace of the tenant, or none.
    let mut elsewhere = shared("x");
    elsewhere["sparkProperties"]["spark.kubernetes.namespace"] = json!("red-batch");
    for body in [shared("x"), elsewhere, json!({"name": "x", "shared": true})] {
        let again = open(&place, &other, &body).await;
        assert_eq!((again.status, &again.json()["id"]), (200, &first.json()["id"]), "{}", again.body);
    }
    let again = open(&place, &place.key, &json!({"name": "x"})).await;
    assert_eq!((again.status, &again.json()["id"]), (200, &own.json()["id"]), "{}", again.body);
    assert_eq!(open(&place, &other, &named("x")).await.status, 201, "a session of another principal");
    // It is ended by its principal and by operators, and frees its name.
    let path = format!("/v1/sessions/{}", first.json()["id"].as_str().unwrap());
    assert_eq!(place.world.send(Some(&other), "DELETE", &path, None).await.status, 403);
    assert_eq!(place.world.send(Some(&place.key), "DELETE", &path, None).await.status, 202);
    assert_eq!(open(&place, &other, &shared("x")).await.status, 201);
}

#[sqlx::test]
async fn requests_for_the_same_shared_session_at_once_open_one(pool: PgPool) {
    let place = Place::with_access(pool, ONE_SHARES).await;
    let other = place.world.key(Role::Submitter, Some("red")).await;
    let body = shared("x");
    let (one, two) = tokio::join!(open(&place, &place.key, &body), open(&place, &other, &body));
    assert_eq!(one.json()["id"], two.json()["id"], "{} {}", one.body, two.body);
}

#[sqlx::test]
async fn a_tenant_has_shared_sessions_only_while_its_operator_permits_them(pool: PgPool) {
    let (place, driver) = (Place::with_access(pool, ONE_SHARES).await, Driver::start().await);
    let blue = place.world.key(Role::Operator, Some("blue")).await;
    let refused = open(&place, &blue, &json!({"shared": true})).await;
    assert!(refused.status == 403 && refused.body.contains("sessions: {shared: true}"), "{refused:?}");
    let foreign = open(&place, &blue, &shared("x")).await;
    assert!(foreign.status == 400 && foreign.body.contains("you may not submit to namespace"), "{foreign:?}");
    let id = place.running_as(&driver, shared("team")).await;
    let other = place.world.key(Role::Submitter, Some("red")).await;
    place.forbid_shared().await;
    let (code, message) = status(&place.call(&other, &id, "Config", b"").await);
    assert!(code == "5" && message.contains("you have no session"), "{code} {message}");
    assert_eq!(status(&place.call(&place.key, &id, "Config", b"").await).0, "0", "its principal keeps it");
    assert_eq!(open(&place, &other, &shared("team")).await.status, 403);
}
