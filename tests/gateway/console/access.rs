//! Each page and each action, for each role and each owner.

use sparkgate::access::Role;
use sqlx::PgPool;

use crate::access::world::World;
use crate::console::site::{TENANTS, pages_of};

#[sqlx::test]
async fn pages_need_a_caller_and_files_do_not(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let paths =
        ["", "/", "/submissions", "/submissions/driver-20260101000000-0001", "/queues", "/overview", "/operator", "/x"];
    for path in paths.map(|path| format!("/console{path}")) {
        let answer = world.send(None, "GET", &path, None).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(
            answer.headers["content-type"].starts_with("text/html") && answer.headers.contains_key("www-authenticate")
        );
        assert!(
            answer.body.contains("action=\"")
                && answer.body.contains("sign-in/key\"")
                && answer.body.contains(&answer.headers["x-request-id"])
        );
        let style = answer.body.split("href=\"").find(|part| part.contains("console.css")).unwrap();
        let style = style.split('"').next().unwrap().replace("../", "");
        let style = style.trim_start_matches("console/");
        assert_eq!(world.send(None, "GET", &format!("/console/{style}"), None).await.status, 200, "{path}: {style}");
    }
    assert_eq!(world.send(None, "GET", "/console/assets/1/passwd", None).await.status, 404);
}

#[sqlx::test]
async fn a_foreign_submission_is_an_unknown_one(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let admin = world.key(Role::Admin, None).await;
    let (red, blue) = (world.key(Role::Operator, Some("red")).await, world.submit(&admin, "blue").await);
    let own = world.submit(&red, "red").await;
    let unknown = "driver-20260101000000-9999";
    let list = world.get(&red, "/console/submissions").await.body;
    assert!(list.contains(&own) && !list.contains(&blue));
    for (foreign, unknown) in pages_of(&blue).iter().zip(&pages_of(unknown)) {
        let pages = [foreign, unknown].map(|path| (path, path.split('/').nth(3).unwrap().to_owned()));
        let mut bodies = Vec::new();
        for (path, id) in pages {
            let answer = world.get(&red, path).await;
            assert_eq!(answer.status, 404, "{path}");
            bodies.push(answer.body.replace(&id, "ID").replace(&answer.headers["x-request-id"], "REQUEST"));
        }
        assert_eq!(bodies[0], bodies[1], "{foreign}");
    }
    let kill = |id: &str| format!("/console/submissions/{id}/kill");
    assert_eq!(world.send(Some(&red), "POST", &kill(&blue), None).await.status, 404);
    assert_eq!(world.send(Some(&red), "POST", &kill(&own), None).await.status, 303);
    let rerun = |id: &str| format!("/v1/submissions/{id}/rerun");
    assert_eq!(world.send(Some(&red), "POST", &rerun(&blue), None).await.status, 404);
    let states = world.get(&admin, "/v1/submissions").await.json();
    let state =
        |id: &str| states["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap()["state"].clone();
    assert_eq!((state(&blue), state(&own)), ("QUEUED".into(), "KILLED".into()));
}

#[sqlx::test]
async fn roles_do_what_they_may(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let colleague = world.key(Role::Submitter, Some("red")).await;
    for (role, tenant, kills, operates) in [
        (Role::Viewer, Some("red"), 403, 403),
        (Role::Submitter, Some("red"), 403, 403),
        (Role::Operator, Some("red"), 303, 403),
        (Role::Operator, None, 303, 200),
        (Role::Admin, None, 303, 200),
    ] {
        let (key, id) = (world.key(role, tenant).await, world.submit(&colleague, "red").await);
        let page = world.get(&key, &format!("/console/submissions/{id}")).await;
        assert_eq!(page.status, 200);
        assert_eq!(
            page.body.contains("class=\"danger\""),
            kills == 303,
            "{role}: the button is there for those who may kill"
        );
        assert_eq!(page.body.contains("href=\"../operator\""), operates == 200, "{role}");
        let killed = world.send(Some(&key), "POST", &format!("/console/submissions/{id}/kill"), None).await;
        assert_eq!(killed.status, kills, "{role}");
        let operator = world.get(&key, "/console/operator").await;
        assert_eq!(operator.status, operates, "{role}");
        assert_eq!(world.get(&key, "/console/overview").await.status, 200, "{role}");
    }
}
