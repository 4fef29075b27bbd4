//! A submission that is run again, by the API and by the form.

use axum::{
    body::Body,
    http::{Request, header},
};
use serde_json::{Value, json};
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;

use crate::console::site::Site;

impl Site {
    async fn rerun(&self, id: &str, patch: &Value) -> crate::in_memory::Answer {
        self.world.send(Some(&self.key), "POST", &format!("/v1/submissions/{id}/rerun"), Some(patch)).await
    }

    /// Submits a job with a secret, labels and limits.
    async fn rich(&self) -> String {
        let job = json!({
            "name": "etl", "appResource": "local:///app.py", "appArgs": ["a b", "token=hidden-1"], "labels": {"team": "data"},
            "sparkProperties": {"spark.kubernetes.namespace": "red", "spark.executor.memory": "2g", "spark.my.password": "hidden-2"},
            "environmentVariables": {"MY_SECRET": "hidden-3"}, "runTimeoutSeconds": 60, "maxRetries": {"infrastructure": 2},
        });
        let answer = self.world.send(Some(&self.key), "POST", "/v1/submissions", Some(&job)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }
}

#[sqlx::test]
async fn a_rerun_is_the_same_with_changes_and_linked_both_ways(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.rich().await;
    let missing = site.rerun(&id, &json!({})).await;
    assert_eq!(missing.status, 400);
    let pointers: Vec<Value> =
        missing.json()["errors"].as_array().unwrap().iter().map(|error| error["pointer"].clone()).collect();
    assert_eq!(pointers, ["#/appArgs/1", "#/environmentVariables/MY_SECRET", "#/sparkProperties/spark.my.password"]);
    assert!(!missing.body.contains("hidden-"));
    let request = site.world.get(&site.key, &format!("/v1/submissions/{id}/request")).await;
    assert_eq!((request.status, request.json()["labels"]["team"].as_str()), (200, Some("data")), "{request:?}");
    assert!(!request.body.contains("hidden-"), "secrets aren't stored");
    let patch = json!({
        "name": "etl-again", "appArgs": ["b", "token=new"], "environmentVariables": {"MY_SECRET": null},
        "sparkProperties": {"spark.my.password": "new-2", "spark.executor.memory": "4g"},
    });
    let created = site.rerun(&id, &patch).await;
    assert_eq!(created.status, 201, "{created:?}");
    let again = created.json();
    let new = again["id"].as_str().unwrap();
    assert_eq!(created.headers["location"], format!("/v1/submissions/{new}"));
    assert_eq!(again["labels"], json!({"team": "data", "sparkgate.dev/rerun-of": id}));
    let was = site.world.get(&site.key, &format!("/v1/submissions/{id}")).await.json();
    for same in ["limits", "retries", "namespace", "owner", "sparkVersion"] {
        assert_eq!(again[same], was[same], "{same}");
    }
    let stored: Value = sqlx::query_scalar("SELECT request FROM submissions WHERE id = $1")
        .bind(new)
        .fetch_one(&site.world.pool)
        .await
        .unwrap();
    assert_eq!(
        (&stored["appArgs"][0], &stored["sparkProperties"]["spark.executor.memory"]),
        (&json!("b"), &json!("4g"))
    );
    assert_eq!(stored["environmentVariables"], json!({}));
    assert!(
        site.page(&format!("/console/submissions/{new}")).await.body.contains(&format!("href=\"../submissions/{id}\""))
    );
    let reruns = site.page(&format!("/console/submissions?label=sparkgate.dev%2Frerun-of%3D{id}")).await.body;
    assert!(reruns.contains(&format!("<tr id=\"{new}\"")) && !reruns.contains(&format!("<tr id=\"{id}\"")));
    // A rerun of the rerun names only the last one.
    let third = site.rerun(new, &json!({"appArgs": null, "sparkProperties": {"spark.my.password": null}})).await.json();
    assert_eq!(third["labels"]["sparkgate.dev/rerun-of"], new);
}

#[sqlx::test]
async fn a_patch_that_makes_no_request_is_refused(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(1).await.remove(0);
    for (patch, pointer) in [
        (json!({"labels": "x"}), "#/labels"),
        (json!({"labels": {"a": 1}}), "#/labels/a"),
        (json!({"nmae": "x"}), "#/nmae"),
        (json!({"sparkProperties": {"spark.driver.memory": "much"}}), "#/sparkProperties/spark.driver.memory"),
    ] {
        let answer = site.rerun(&id, &patch).await;
        assert_eq!((answer.status, answer.json()["errors"][0]["pointer"].as_str()), (400, Some(pointer)), "{answer:?}");
    }
    for patch in [json!([]), json!("x")] {
        assert_eq!(site.rerun(&id, &patch).await.status, 400, "{patch}");
    }
    assert_eq!(site.rerun("driver-20260101000000-9999", &json!({})).await.json()["code"], "submission-not-found");
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&site.world.pool).await.unwrap();
    assert_eq!(count, 1);
}

#[sqlx::test]
async fn a_key_makes_a_rerun_safe_to_repeat(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(1).await.remove(0);
    let rerun = async |body: &'static str| {
        let request = Request::post(format!("/v1/submissions/{id}/rerun")).header(header::HOST, "gateway");
        let request =
            request.header(header::AUTHORIZATION, format!("Bearer {}", site.key)).header("idempotency-key", "once");
        let request = request.header(header::CONTENT_TYPE, "application/merge-patch+json");
        site.world.answer(request.body(Body::from(body)).unwrap()).await
    };
    let (first, second, other) = (rerun("").await, rerun("{}").await, rerun(r#"{"mainClass": "B"}"#).await);
    assert_eq!((first.status, second.status, other.status), (201, 200, 422), "{first:?}");
    assert_eq!(first.json()["id"], second.json()["id"]);
}

#[sqlx::test]
async fn the_form_says_beforehand_what_would_be_refused(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.rich().await;
    let page = site.page(&format!("/console/submissions/{id}/rerun")).await.body;
    assert!(
        page.contains("Without a change it would be refused") && page.contains("#/sparkProperties/spark.my.password")
    );
    let fine = site.submit(1).await.remove(0);
    assert!(!site.page(&format!("/console/submissions/{fine}/rerun")).await.body.contains("would be refused"));
}

#[sqlx::test]
async fn a_form_runs_a_submission_again(pool: PgPool) {
    let site = Site::start(pool).await;
    let mut browser = Browser::start(&site.key).await;
    let id = site.submit(1).await.remove(0);
    site.set(&id, r#"request = jsonb_set(request, '{appArgs}', '["1", "two words"]')"#).await;
    browser.open(&site.url(&format!("/console/submissions/{id}"))).await;
    browser.click("[...document.querySelectorAll('#actions a')].find((a) => a.textContent === 'Run again')").await;
    browser.until("document.readyState === 'complete' && location.pathname.endsWith('/rerun')").await;
    let field = |name: &str| format!("document.querySelector('form.rerun [name=\"{name}\"]').value");
    assert_eq!(browser.eval(&field("arguments")).await, "1\ntwo words");
    let send = "document.querySelector('form.rerun button').click()";
    browser.eval(&format!("{} = 'much'; {} = '1\\n2'; {send}", field("spark.driver.memory"), field("arguments"))).await;
    browser.until("document.querySelector('[role=alert]')?.innerText.includes('spark.driver.memory')").await;
    assert_eq!(browser.eval(&field("arguments")).await, "1\n2", "the form keeps what was typed");
    browser.eval(&format!("{} = '2g'; {} = '{{'; {send}", field("spark.driver.memory"), field("patch"))).await;
    browser.until("document.querySelector('[role=alert]')?.innerText.includes(\"can't be read as JSON\")").await;
    assert_eq!(browser.eval(&field("patch")).await, "{", "the form keeps its text");
    browser.eval(&format!("{} = '{{\"name\": \"changed <b>\"}}'; {send}", field("patch"))).await;
    browser.until(&format!("document.readyState === 'complete' && /driver-[^/]*$/.test(location.pathname) && !location.pathname.endsWith('{id}')")).await;
    assert_eq!(browser.eval("document.querySelector('h1').textContent").await, "changed <b>");
    let new = browser.eval("location.pathname.split('/').pop()").await;
    let request = site.world.get(&site.key, &format!("/v1/submissions/{}/request", new.as_str().unwrap())).await.json();
    assert_eq!(
        (&request["appArgs"], &request["sparkProperties"]["spark.driver.memory"]),
        (&json!(["1", "2"]), &json!("2g"))
    );
    assert_eq!(site.world.get(&site.key, "/v1/submissions").await.json()["items"].as_array().unwrap().len(), 2);
}
