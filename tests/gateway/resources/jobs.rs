//! Jobs: all runs of a name.

use serde_json::json;
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::access::world::{World, job};

const TENANTS: &str = "
authentication: {}
tenants:
  red: {namespaces: [red]}
  blue: {namespaces: [blue]}
limits: {writes: 100000/s, reads: 100000/s}
";

/// Submits runs of a name, the oldest first, an hour apart, each with its end after 90 seconds.
async fn runs(world: &World, key: &str, tenant: &str, name: &str, states: &[&str], memory: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for (hours_ago, state) in (0..states.len()).rev().zip(states) {
        let mut body = job(tenant);
        body["name"] = name.into();
        body["sparkProperties"]["spark.executor.memory"] = if *state == "FAILED" { "8g" } else { memory }.into();
        let answer = world.send(Some(key), "POST", "/v1/submissions", Some(&body)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        let ended =
            "UPDATE submissions SET state = $2, created_at = at, started_at = at, finished_at = at + interval '90 s',
            message = CASE WHEN $2 = 'FAILED' THEN 'ValueError: no' END, exit_code = CASE WHEN $2 = 'FAILED' THEN 1 END
            FROM (SELECT now() - make_interval(hours => $3) AS at) AS time WHERE id = $1";
        let bound = sqlx::query(ended).bind(&id).bind(*state).bind(i32::try_from(hours_ago).unwrap());
        bound.execute(&world.pool).await.unwrap();
        ids.push(id);
    }
    ids
}

#[sqlx::test]
async fn a_job_tells_how_long_the_steps_of_its_starts_take(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let key = world.key(Role::Admin, None).await;
    let none = json!({"runs": 0, "steps": []});
    runs(&world, &key, "red", "etl", &["FINISHED"; 10], "2g").await;
    runs(&world, &key, "blue", "etl", &["FINISHED"], "2g").await;
    sqlx::query("UPDATE submissions SET started_at = NULL").execute(&world.pool).await.unwrap();
    assert_eq!(world.get(&key, "/v1/jobs/etl?tenant=red").await.json()["startup"], none, "no driver has started");
    // They got a node after 1 to 10 seconds, and started two seconds later; half of them asked for executors after another second.
    sqlx::query(
        "UPDATE submissions s SET queued_at = created_at, pod_since = created_at + place * interval '1 s',
             started_at = created_at + (place + 2) * interval '1 s'
         FROM (SELECT id, row_number() OVER (ORDER BY number) AS place FROM submissions WHERE tenant = 'red') AS n WHERE n.id = s.id",
    )
    .execute(&world.pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state, created_at)
         SELECT id, 1, 1, 'p', 'u', 'PENDING', started_at + interval '1 s' FROM submissions WHERE number % 2 = 0 AND tenant = 'red'",
    )
    .execute(&world.pool)
    .await
    .unwrap();
    let step = |step: &str, runs: u32, median: f64, p90: f64| json!({"step": step, "runs": runs, "medianSeconds": median, "p90Seconds": p90});
    let steps =
        [step("scheduled", 10, 5.0, 9.0), step("started", 10, 2.0, 2.0), step("executorRequested", 5, 1.0, 1.0)];
    let startup = world.get(&key, "/v1/jobs/etl?tenant=red").await.json()["startup"].clone();
    assert_eq!(startup, json!({"runs": 10, "steps": steps}));
    let page = world.get(&key, "/console/jobs/etl?tenant=red").await.body;
    for part in ["Finding a node", "5.0s", "9.0s", "Starting Spark"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(world.get(&key, "/v1/jobs/etl?tenant=blue").await.json()["startup"], none);
}

#[sqlx::test]
async fn a_job_tells_how_its_runs_ended_and_what_has_changed(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let key = world.key(Role::Admin, None).await;
    let name = "a/b ü";
    let ids =
        runs(&world, &key, "red", name, &["FINISHED", "FINISHED", "FINISHED", "FINISHED", "FINISHED", "FAILED"], "2g")
            .await;
    runs(&world, &key, "red", "well", &["FAILED", "FINISHED"], "2g").await;
    let document = world.get(&key, "/v1/jobs/a%2Fb%20%C3%BC").await.json();
    assert_eq!((&document["name"], &document["tenant"]), (&json!(name), &json!("red")), "{document}");
    assert_eq!((&document["medianSeconds"], &document["lastSuccess"]["id"]), (&json!(90.0), &json!(ids[4])));
    let usual = json!({"code": "APPLICATION_ERROR", "count": 1, "message": "ValueError: no"});
    assert_eq!(document["usualFailure"], usual);
    assert_eq!(document["runs"].as_array().unwrap().len(), 6);
    assert_eq!(document["runs"][0]["failure"]["message"], "ValueError: no", "{document}");
    assert!(document["nextExpectedAt"].is_string(), "{document}");
    let changes = json!([{"part": "spark.executor.memory", "before": "2g", "after": "8g"}]);
    let changed = &document["changedSinceSuccess"];
    assert_eq!((&changed["success"], &changed["changes"]), (&json!(ids[4]), &changes), "{changed}");

    let names = async |query: &str| {
        let list = world.get(&key, &format!("/v1/jobs{query}")).await.json();
        let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
        items.iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["well", name]);
    assert_eq!(names("?failing=true").await, [name]);
    assert_eq!(names("?name=we").await, ["well"]);
    let page = world.get(&key, "/v1/jobs?limit=1").await.json();
    assert_eq!(names(&format!("?limit=1&cursor={}", page["next"].as_str().unwrap())).await, [name]);
    assert_eq!(world.get(&key, "/v1/jobs?limt=1").await.status, 400);
    let unknown = world.get(&key, "/v1/jobs/none").await;
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("job-not-found")));
}

#[sqlx::test]
async fn jobs_of_other_tenants_are_unknown_and_a_name_of_several_needs_one(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let (all, red) = (world.key(Role::Admin, None).await, world.key(Role::Viewer, Some("red")).await);
    runs(&world, &all, "red", "shared", &["FINISHED"], "2g").await;
    runs(&world, &all, "blue", "shared", &["FAILED"], "2g").await;
    runs(&world, &all, "blue", "of-blue", &["FINISHED"], "2g").await;
    let several = world.get(&all, "/v1/jobs/shared").await;
    assert_eq!((several.status, &several.json()["errors"][0]["parameter"]), (400, &json!("tenant")), "{several:?}");
    let blue = world.get(&all, "/v1/jobs/shared?tenant=blue").await.json();
    assert_eq!((&blue["tenant"], &blue["successRate"]), (&json!("blue"), &json!(0.0)));
    assert_eq!(world.get(&red, "/v1/jobs/shared").await.json()["tenant"], "red");
    assert_eq!(world.get(&red, "/v1/jobs/of-blue").await.status, 404);
    assert_eq!(world.get(&red, "/v1/jobs/shared?tenant=blue").await.status, 404);
    assert_eq!(world.get(&red, "/v1/jobs").await.json()["items"].as_array().unwrap().len(), 1);
}
