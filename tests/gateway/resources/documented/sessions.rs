//! Sessions of Spark Connect: only a gateway with an address for their clients has some.

use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::postgres::PgPoolOptions;

use super::{Place, Promise};
use crate::{
    access::world::{TWO_TENANTS, World},
    in_memory::Answer,
    sessions::serving,
};

pub(super) const OPERATIONS: [&str; 4] = ["openSession", "listSessions", "getSession", "endSession"];

/// Sends a request about a session.
pub(super) async fn about_session(place: &Place, promise: &Promise<'_>) -> Option<Answer> {
    let options = place.pool.connect_options().as_ref().clone();
    let pool = PgPoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
    let mut world = World::new(pool.clone(), TWO_TENANTS).await;
    world.configure(serving).await;
    let key = world.key(Role::Admin, None).await;
    let body = json!({"sparkProperties": {"spark.kubernetes.namespace": "red"}});
    let opened = world.send(Some(&key), "POST", "/v1/sessions", Some(&body)).await;
    let id = opened.json()["id"].as_str().unwrap().to_owned();
    let mut path = promise.path_of(&id);
    let mut body = (promise.operation == "openSession").then_some(body);
    match (promise.operation, promise.status) {
        (_, 503) => pool.close().await,
        (_, 400) => path += "?colour=green",
        (_, 404) => path = promise.path_of("driver-1-1"),
        ("openSession", 201) => body.as_mut()?["name"] = Value::from("another"),
        ("openSession", 415) => body = None,
        // The tenant may use no queue.
        ("openSession", 422) => {
            let body = body.as_mut()?;
            (body["name"], body["priority"]) = (Value::from("another"), Value::from(1));
        }
        ("endSession", 200) => {
            world.send(Some(&key), "DELETE", &path, None).await;
        }
        _ => {}
    }
    Some(world.send(Some(&key), &promise.method, &path, body.as_ref()).await)
}
