//! Lists, page by page.

use axum::Router;
use serde_json::json;
use sqlx::PgPool;

use crate::resources::world::{accepted, api, delete, get, is_problem};

/// Returns the ids of a list, and the cursor of its next page.
async fn page(api: &Router, query: &str) -> (Vec<String>, Option<String>) {
    let answer = get(api, &format!("/v1/submissions?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.body);
    let list = answer.json();
    let ids = list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned());
    (ids.collect(), list["next"].as_str().map(str::to_owned))
}

#[sqlx::test]
async fn list_filters_select_the_submissions(pool: PgPool) {
    let api = api(&pool).await;
    let alice =
        json!({"name": "etl-1", "labels": {"team": "a", "tier": "1"}, "environmentVariables": {"SPARK_USER": "alice"}});
    let bob = json!({"name": "etl_2", "labels": {"team": "a"}, "proxyUser": "bob",
        "sparkProperties": {"spark.kubernetes.namespace": "n"}});
    let (alice, bob) = (accepted(&api, alice).await, accepted(&api, bob).await);
    let other = accepted(&api, json!({"name": "e"})).await;
    delete(&api, &format!("/v1/submissions/{other}")).await;
    let created = get(&api, &format!("/v1/submissions/{bob}")).await.json()["createdAt"].as_str().unwrap().to_owned();
    for (query, expected) in [
        (String::new(), vec![&other, &bob, &alice]),
        (format!("id={bob}"), vec![&bob]),
        ("id=driver-".into(), vec![&other, &bob, &alice]),
        (format!("id={}&name=etl", &bob[..11]), vec![&bob, &alice]),
        ("id=driver-1999".into(), vec![]),
        ("name=etl".into(), vec![&bob, &alice]),
        ("name=etl_".into(), vec![&bob]),
        ("owner=alice".into(), vec![&alice]),
        ("namespace=n".into(), vec![&bob]),
        ("label=team%3Da".into(), vec![&bob, &alice]),
        ("label=team%3Da&label=tier%3D1".into(), vec![&alice]),
        ("state=KILLED".into(), vec![&other]),
        ("state=killed".into(), vec![&other]),
        ("state=Queued,killed&name=e".into(), vec![&other, &bob, &alice]),
        ("state=QUEUED,KILLED&name=e".into(), vec![&other, &bob, &alice]),
        ("state=QUEUED&state=RUNNING".into(), vec![&bob, &alice]),
        (format!("createdAfter={created}"), vec![&other, &bob]),
        (format!("createdBefore={created}"), vec![&alice]),
        ("label=team%3D%27".into(), vec![]),
        ("sparkVersion=4.3".into(), vec![&other, &bob, &alice]),
        ("sparkVersion=4.3.0&name=etl".into(), vec![&bob, &alice]),
        ("sparkVersion=4".into(), vec![&other, &bob, &alice]),
        ("sparkVersion=4.3.".into(), vec![]),
        ("sparkVersion=3.5".into(), vec![]),
        ("nameContains=TL".into(), vec![&bob, &alice]),
        ("nameContains=%5F2".into(), vec![&bob]),
        ("principal=anonymous:anonymous".into(), vec![&other, &bob, &alice]),
        ("principal=corp:alice".into(), vec![]),
        ("failureCode=killed_on_request".into(), vec![&other]),
        ("failureCode=QUEUED,LOST&name=etl".into(), vec![&bob, &alice]),
        ("failureCode=LOST&failureCode=KILLED_ON_REQUEST".into(), vec![&other]),
        ("createdAfter=2020-01-01&createdBefore=2999-01-01".into(), vec![&other, &bob, &alice]),
    ] {
        assert_eq!(page(&api, &query).await.0.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let counted = get(&api, "/v1/submissions?name=etl&limit=1&total=true").await.json();
    assert_eq!((&counted["total"], counted["items"].as_array().unwrap().len()), (&json!(2), 1));
}

#[sqlx::test]
async fn pages_are_stable_while_more_is_accepted(pool: PgPool) {
    let api = api(&pool).await;
    let mut all = Vec::new();
    for _ in 0..7 {
        all.insert(0, accepted(&api, json!({})).await);
    }
    let (mut seen, mut next) = page(&api, "limit=3").await;
    while let Some(cursor) = next {
        accepted(&api, json!({})).await;
        let (more, after) = page(&api, &format!("limit=3&cursor={cursor}")).await;
        seen.extend(more);
        next = after;
    }
    assert_eq!(seen, all);
}

#[sqlx::test]
async fn a_cursor_of_another_list_is_refused(pool: PgPool) {
    let api = api(&pool).await;
    for _ in 0..3 {
        accepted(&api, json!({})).await;
    }
    let cursor = page(&api, "limit=1&owner=tester").await.1.unwrap();
    for query in [
        format!("limit=1&cursor={cursor}"),
        format!("owner=other&cursor={cursor}"),
        format!("owner=tester&cursor={}", &cursor[1..]),
        "cursor=".to_owned(),
        "cursor=AAAAAAAAAAEAAAAAAAAAAQ".to_owned(),
    ] {
        is_problem(&get(&api, &format!("/v1/submissions?{query}")).await, 400, "invalid-cursor");
    }
    // The database was restored to an earlier state.
    sqlx::query("DELETE FROM submissions WHERE number >= 1").execute(&pool).await.unwrap();
    is_problem(&get(&api, &format!("/v1/submissions?owner=tester&cursor={cursor}")).await, 400, "invalid-cursor");
}

#[sqlx::test]
async fn a_parameter_that_cannot_be_used_is_named(pool: PgPool) {
    let api = api(&pool).await;
    for (query, parameter) in [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=2", "limit"),
        ("state=DONE", "state"),
        ("label=team", "label"),
        ("createdAfter=yesterday", "createdAfter"),
        ("createdAfter=-9999-01-01T00:00:00Z", "createdAfter"),
        ("total=perhaps", "total"),
        ("nameContains=", "nameContains"),
        ("failureCode=OOM", "failureCode"),
        ("status=RUNNING", "status"),
        ("name=a%00", "name"),
    ] {
        let problem = is_problem(&get(&api, &format!("/v1/submissions?{query}")).await, 400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{problem}");
    }
}
