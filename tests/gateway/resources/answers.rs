//! What a reply says about a submission is true, whatever fails after the write.

use axum::{Router, body::Body, http::Request};
use futures::future::join_all;
use serde_json::{Value, json};
use sparkgate::{
    api::{HttpSettings, router},
    spark::SparkVersion,
    store::{DatabaseSettings, Store},
};
use sparkgate_testing::database;
use sqlx::{Connection, PgConnection, PgPool};
use tokio::{task::JoinHandle, time::sleep};

use crate::in_memory::{Answer, send, service};
use crate::resources::world::{count, is_problem, job};

const PATH: &str = "/v1/submissions";
/// The interval between two reads of a state.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// Returns the API on pools like those of `serve`: four connections are for requests that accept no submission.
async fn api(pool: &PgPool) -> Router {
    let settings = DatabaseSettings { url: database::url(pool), max_connections: 16 };
    let store = Store::connect(&settings).await.unwrap();
    router(service(SparkVersion::V4_3, store).await, HttpSettings::default()).unwrap()
}

/// Opens a session of another client.
async fn another(pool: &PgPool) -> PgConnection {
    PgConnection::connect(&database::url(pool)).await.unwrap()
}

/// Waits until `least` statements wait for a lock.
async fn wait_for_waiting(pool: &PgPool, least: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(pool).await.unwrap() < least {
        sleep(LOOK).await;
    }
}

async fn run(connection: &mut PgConnection, statement: &'static str) {
    sqlx::raw_sql(statement).execute(connection).await.unwrap();
}

/// Sends a request and retries it as long as the reply asks for it, as a well-behaved client does. Opening a database
/// connection may take longer than a request waits for one.
async fn obediently(api: &Router, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    loop {
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = send(api, request.body(Body::from(body.to_string())).unwrap()).await;
        if answer.status != 503 || answer.header("retry-after").is_none() {
            return answer;
        }
        sleep(LOOK).await;
    }
}

async fn get(api: &Router, path: &str) -> Answer {
    obediently(api, "GET", path, &[], &Value::Null).await
}

async fn delete(api: &Router, path: &str) -> Answer {
    obediently(api, "DELETE", path, &[], &Value::Null).await
}

async fn post(api: &Router, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    obediently(api, "POST", path, headers, body).await
}

async fn submitted(api: &Router, headers: &[(&str, &str)], fields: Value) -> Answer {
    let body = job(fields);
    let answer = post(api, PATH, headers, &body).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer
}

/// Returns the path of a new submission.
async fn accepted(api: &Router) -> String {
    format!("{PATH}/{}", submitted(api, &[], json!({})).await.json()["id"].as_str().unwrap())
}

#[sqlx::test]
async fn a_create_is_answered_although_no_request_can_read(pool: PgPool) {
    let api = api(&pool).await;
    let first = accepted(&api).await;
    let mut other = another(&pool).await;
    run(&mut other, "BEGIN; LOCK TABLE executors, attempts").await;
    let readers = (0..16).map(|n| {
        let (api, path) = (api.clone(), format!("{first}/{}", ["executors", "logs"][n % 2]));
        tokio::spawn(async move { get(&api, &path).await })
    });
    let readers: Vec<JoinHandle<Answer>> = readers.collect();
    wait_for_waiting(&pool, 4).await;

    let created = submitted(&api, &[], json!({"labels": {"a": "b"}, "runTimeoutSeconds": 60})).await;
    assert_eq!(count(&pool).await, 2);
    run(&mut other, "ROLLBACK").await;
    join_all(readers).await;
    let path = created.header("location").unwrap();
    let read = get(&api, path).await;
    assert_eq!((read.json(), read.header("etag")), (created.json(), created.header("etag")));
}

/// The statements after that of a kill wait for a table that another session has locked meanwhile.
#[sqlx::test]
async fn a_kill_is_answered_by_the_statement_that_records_it(pool: PgPool) {
    let api = api(&pool).await;
    let path = accepted(&api).await;
    let (mut events, mut table) = (another(&pool).await, another(&pool).await);
    // The kill waits when it writes its event, while it holds the table.
    run(
        &mut events,
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
         CREATE TRIGGER wait BEFORE INSERT ON submission_events FOR EACH ROW EXECUTE FUNCTION wait()",
    )
    .await;
    run(&mut events, "BEGIN; SELECT pg_advisory_xact_lock(1)").await;
    let killing = tokio::spawn({
        let (api, path) = (api.clone(), path.clone());
        async move { delete(&api, &path).await }
    });
    wait_for_waiting(&pool, 1).await;
    let locked = tokio::spawn(async move {
        run(&mut table, "BEGIN; LOCK TABLE submissions").await;
        table
    });
    wait_for_waiting(&pool, 2).await;
    run(&mut events, "ROLLBACK").await;
    let killed = killing.await.unwrap();
    assert_eq!((killed.status, &killed.json()["state"]), (202, &json!("KILLED")), "{}", killed.body);
    run(&mut locked.await.unwrap(), "ROLLBACK").await;
    assert_eq!(get(&api, &path).await.json()["state"], "KILLED");
    let again = delete(&api, &path).await;
    assert_eq!((again.status, &again.json()["state"]), (200, &json!("KILLED")), "{}", again.body);
}

#[sqlx::test]
async fn a_row_that_cannot_be_read_is_killed_and_the_answer_says_so(pool: PgPool) {
    let api = api(&pool).await;
    let key = [("idempotency-key", "k")];
    let id = submitted(&api, &key, json!({})).await.json()["id"].as_str().unwrap().to_owned();
    sqlx::query("UPDATE submissions SET names = '{}'").execute(&pool).await.unwrap();
    let (body, path) = (job(json!({})), format!("{PATH}/{id}"));
    let replayed = post(&api, PATH, &key, &body).await;
    let replayed = is_problem(&replayed, 500, "internal-error");
    let killed = is_problem(&delete(&api, &path).await, 500, "internal-error");
    for (problem, expected) in [(replayed, "was accepted before"), (killed, "will be ended")] {
        assert!(problem["detail"].as_str().unwrap().starts_with(&format!("{id} {expected}")), "{problem}");
        assert_eq!(problem["submissionId"], id);
    }
    let state: String = sqlx::query_scalar("SELECT state FROM submissions").fetch_one(&pool).await.unwrap();
    assert_eq!(state, "KILLED");
}

/// As after logical replication, which copies rows but no sequences.
#[sqlx::test]
async fn sequences_behind_their_rows_are_moved_by_the_first_create(pool: PgPool) {
    let api = api(&pool).await;
    accepted(&api).await;
    let many = "INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user,
                                         created_at, finished_at)
        SELECT 'driver-20260101000000-' || n, n, 'FAILED', request, spark_version, namespace, names, spark_user,
               created_at, now()
        FROM submissions, generate_series(1, 3000) AS n";
    sqlx::query(many).execute(&pool).await.unwrap();
    let events = "INSERT INTO submission_events (id, submission_id, attempt, state) OVERRIDING SYSTEM VALUE
        SELECT 100 + number, id, 1, 'FAILED' FROM submissions WHERE number > 0";
    sqlx::query(events).execute(&pool).await.unwrap();
    let behind =
        "SELECT setval('submission_number', 2), setval(pg_get_serial_sequence('submission_events', 'id'), 150)";
    sqlx::query(behind).execute(&pool).await.unwrap();

    join_all((0..20).map(|_| submitted(&api, &[], json!({})))).await;
    let spark = json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appArgs": [],
        "appResource": "local:///a.jar", "mainClass": "A", "environmentVariables": {}, "sparkProperties": {}});
    let answer = post(&api, "/v1/submissions/create", &[], &spark).await;
    assert_eq!((answer.status, &answer.json()["success"]), (200, &json!(true)), "{}", answer.body);
    assert_eq!(count(&pool).await, 3022);
    // Numbers, ids and names agree, and no thousand numbers were skipped.
    let odd = "SELECT count(*) FROM submissions WHERE number > 3000 AND (number > 3200
        OR right(id, 4) <> number::text OR names ->> 'driverPod' IS NULL)";
    assert_eq!(sqlx::query_scalar::<_, i64>(odd).fetch_one(&pool).await.unwrap(), 0);
}
