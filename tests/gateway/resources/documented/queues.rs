//! Queues, and submissions in them: only a gateway with an access file has queues.

use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::postgres::PgPoolOptions;

use super::{Place, Promise};
use crate::{access::world::World, in_memory::Answer};

const QUEUES: &str = "
authentication: {}
tenants: {red: {namespaces: [red]}}
queues: {day: {priority: {max: 9}}}
";

pub(super) const OPERATIONS: [&str; 6] =
    ["listQueues", "setQueueState", "holdSubmission", "releaseSubmission", "changeQueuePlaces", "requeueSubmission"];

/// Sends a request about a queue, or about a submission in it.
pub(super) async fn about_queue(place: &Place, promise: &Promise<'_>) -> Option<Answer> {
    let options = place.pool.connect_options().as_ref().clone();
    let pool = PgPoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
    let world = World::new(pool.clone(), QUEUES).await;
    let key = world.key(Role::Admin, None).await;
    let id = world.submit(&key, "red").await;
    let mut path = promise.path_of(&id).replace("{queue}", "day");
    let mut body = match promise.operation {
        "setQueueState" => Some(json!({"state": "open"})),
        "requeueSubmission" => Some(json!({"queue": "day", "priority": 9})),
        "changeQueuePlaces" => Some(json!({"filter": {"queue": "day"}, "action": "move", "queue": "day"})),
        _ => None,
    };
    match promise.status {
        503 => pool.close().await,
        400 => path += "?colour=green",
        404 => path = promise.path_of("driver-1-1"),
        409 => {
            world.send(Some(&key), "DELETE", &format!("/v1/submissions/{id}"), None).await;
        }
        422 => {
            path = path.replace("/day/", "/none/");
            if let Some(queue) = body.as_mut().and_then(|body| body.get_mut("queue")) {
                *queue = Value::from("none");
            }
        }
        _ => {}
    }
    Some(world.send(Some(&key), &promise.method, &path, body.as_ref()).await)
}
