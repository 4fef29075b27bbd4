//! What submissions used: in their documents, and in sums.

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::resources::world::{accepted, api, get, is_problem, submit};

/// Makes a submission end after an hour of a driver with half a core and a GiB, and of an executor with two cores, on 1 March 2026.
async fn ended(pool: &PgPool, id: &str) {
    let statements = [
        "UPDATE submissions SET state = 'FINISHED', created_at = '2026-03-01T09:00:00Z', pod_uid = 'u',
             pod_since = '2026-03-01T10:00:00Z', pod_ended_at = '2026-03-01T11:00:00Z', finished_at = '2026-03-01T11:00:01Z',
             pod_millicores = 500, pod_memory_bytes = 1073741824 WHERE id = $1",
        "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state, pod_since, finished_at,
             end_estimated, pod_millicores, pod_memory_bytes)
         VALUES ($1, 1, 1, 'e', 'e', 'DELETED', '2026-03-01T10:30:00Z', '2026-03-01T10:45:00Z', true, 2000, 0)",
    ];
    // Nothing of that time is settled yet.
    sqlx::query("UPDATE usage_settled SET until = '2026-01-01Z'").execute(pool).await.unwrap();
    for statement in statements {
        sqlx::query(statement).bind(id).execute(pool).await.unwrap();
    }
}

fn used(cores: u64, memory: u64) -> Value {
    json!({"coreSeconds": cores, "memoryByteSeconds": memory})
}

const MEMORY: u64 = 3600 << 30;

#[sqlx::test]
async fn a_submission_has_its_usage_with_each_attempt(pool: PgPool) {
    let api = api(&pool).await;
    let created = submit(&api, json!({})).await.json();
    let path = format!("/v1/submissions/{}", created["id"].as_str().unwrap());
    assert_eq!(get(&api, &path).await.json().get("usage"), None, "it has no pod");
    ended(&pool, created["id"].as_str().unwrap()).await;
    let answer = get(&api, &path).await;
    let sum = json!({"driver": used(1800, MEMORY), "executors": used(1800, 0), "total": used(3600, MEMORY),
        "estimated": used(1800, 0)});
    let mut expected = sum.clone();
    let mut attempt = sum;
    attempt["attempt"] = json!(1);
    expected["attempts"] = json!([attempt]);
    assert_eq!(answer.json()["usage"], expected, "{}", answer.body);
    assert_eq!(get(&api, &path).await.header("etag"), answer.header("etag"));
    let listed = get(&api, "/v1/submissions").await.json();
    assert_eq!(listed["items"][0].get("usage"), None, "lists are short");
}

#[sqlx::test]
async fn usage_is_summed_up_by_owner_and_label_as_json_or_csv(pool: PgPool) {
    let api = api(&pool).await;
    for (owner, labels) in [("=cmd()", json!({"team": "data"})), ("bob", json!({})), ("bob", json!({"team": "data"}))] {
        let id = accepted(&api, json!({"environmentVariables": {"SPARK_USER": owner}, "labels": labels})).await;
        ended(&pool, &id).await;
    }
    let march = "/v1/usage?since=2026-03-01&until=2026-04-01";
    let report = get(&api, &format!("{march}&groupBy=owner,label:team")).await.json();
    let groups: Vec<_> = report["items"].as_array().unwrap().iter().map(|item| item["group"].clone()).collect();
    let group = |owner: &str, team: Value| json!({"owner": owner, "label:team": team});
    let expected = [group("=cmd()", json!("data")), group("bob", json!("data")), group("bob", Value::Null)];
    assert_eq!(groups, expected, "{report}");
    assert_eq!(
        (&report["items"][0]["total"], &report["total"]["total"]),
        (&used(3600, MEMORY), &used(10800, 3 * MEMORY))
    );
    assert_eq!((&report["since"], &report["until"]), (&json!("2026-03-01"), &json!("2026-04-01")));
    let filtered = get(&api, &format!("{march}&owner=bob&label=team=data")).await.json();
    assert_eq!((&filtered["total"]["total"], &filtered["items"]), (&used(3600, MEMORY), &json!([])));
    let february = get(&api, "/v1/usage?since=2026-02-01&until=2026-03-01&groupBy=day").await.json();
    assert_eq!(february["items"], json!([]));

    let csv = get(&api, &format!("{march}&groupBy=owner,label:team&format=csv")).await;
    assert!(csv.header("content-type").unwrap().starts_with("text/csv"), "{csv:?}");
    let lines: Vec<&str> = csv.body.split("\r\n").collect();
    let amounts = "1800,3865470566400,1800,0,3600,3865470566400,1800,0,,";
    let expected = [format!("\"'=cmd()\",data,{amounts}"), format!("bob,data,{amounts}"), format!("bob,,{amounts}")];
    assert_eq!(lines[1..4], expected);
    assert!(lines[0].starts_with("owner,label:team,driver_core_seconds,") && lines[4..] == [""], "{lines:?}");
}

#[sqlx::test]
async fn a_report_that_can_not_be_meant_is_refused(pool: PgPool) {
    let api = api(&pool).await;
    for (query, parameter) in [
        ("groupBy=colour", "groupBy"),
        ("groupBy=day,day", "groupBy"),
        ("since=2026-01-01&until=2026-01-01", "until"),
        ("since=2024-01-01&until=2026-01-01", "since"),
        ("since=yesterday", "since"),
        ("format=xml", "format"),
    ] {
        let answer = get(&api, &format!("/v1/usage?{query}")).await;
        let problem = is_problem(&answer, 400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{problem}");
    }
}
