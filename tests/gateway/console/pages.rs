//! What pages say, without a browser.

use axum::{
    body::Body,
    http::{Request, header},
};
use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::access::world::{World, job};
use crate::console::site::{Site, TENANTS, pages_of};

/// The pages of the installation.
const PAGES: [&str; 6] = [
    "/console/submissions",
    "/console/jobs",
    "/console/queues",
    "/console/sessions",
    "/console/overview",
    "/console/operator",
];

#[sqlx::test]
async fn every_page_has_its_policy_and_nothing_inline_or_from_outside(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(1).await.remove(0);
    for path in PAGES.map(str::to_owned).iter().chain(&pages_of(&id)) {
        let answer = site.page(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let policy = &answer.headers["content-security-policy"];
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.headers["x-frame-options"], "DENY");
        assert_eq!(answer.headers["cross-origin-opener-policy"], "same-origin");
        for inline in ["<style", "style=", " onclick", " onload", "javascript:"] {
            assert!(!answer.body.contains(inline), "{path} has {inline}");
        }
        for tag in answer.body.split('<').filter(|tag| tag.starts_with("script")) {
            assert!(tag.contains(" src=\"") && tag.ends_with('>'), "{tag}");
        }
        let is_absolute = |part: &str| part.starts_with('/') || part.split('"').next().unwrap().contains("://");
        let links = ["href=\"", "src=\"", "action=\""].into_iter().flat_map(|name| answer.body.split(name).skip(1));
        assert!(links.clone().count() > 5 && !links.into_iter().any(is_absolute), "{path} works below a prefix");
        assert!(answer.body.len() < 100 << 10, "{path}: {}", answer.body.len());
    }
}

#[sqlx::test]
async fn commands_that_run_a_submission_again_say_all_of_it(pool: PgPool) {
    let site = Site::start(pool).await;
    let request = |resource: &str, class: Option<&str>| {
        json!({
            "name": "etl", "appResource": resource, "mainClass": class, "appArgs": ["a b"], "labels": {"team": "data"},
            "sparkProperties": {"spark.kubernetes.namespace": "red", "spark.executor.memory": "2g"},
            "environmentVariables": {"MODE": "full"}, "runTimeoutSeconds": 60, "maxRetries": {"infrastructure": 2},
        })
    };
    let page = async |request: Value| {
        let answer = site.world.send(Some(&site.key), "POST", "/v1/submissions", Some(&request)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        let body = site.page(&format!("/console/submissions/{id}")).await.body;
        (id, body.replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    };
    let (id, jvm) = page(request("local:///opt/etl.jar", Some("org.example.Etl"))).await;
    for part in [
        &format!("sparkgate rerun {id}"),
        "sparkgate submit --request - <<'REQUEST'",
        "MODE=full spark-submit --master spark://gateway:6066 --deploy-mode cluster",
        "--class org.example.Etl",
        "--conf spark.sparkgate.label.team=data",
        "--conf spark.sparkgate.runTimeout=60s",
        "--conf spark.sparkgate.maxRetries.infrastructure=2",
        "local:///opt/etl.jar 'a b'",
        "from sparkgate_provider.operators.sparkgate import SparkgateSubmitOperator",
        "    labels={\"team\": \"data\"},",
        "    run_timeout=60,",
        "    max_retries={\"application\": 0, \"infrastructure\": 2},",
        "    env={\"MODE\": \"full\"},",
    ] {
        assert!(jvm.contains(part), "{part}: {jvm}");
    }
    let (_, python) = page(request("local:///opt/etl.py", None)).await;
    assert!(python.contains("sparkgate rerun") && !python.contains("spark-submit --master"), "it refuses Python");
}

#[sqlx::test]
async fn a_driver_that_ran_no_job_when_it_was_asked_has_no_counts(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(1).await.remove(0);
    let summary = "INSERT INTO spark_summaries (submission_id, next_at, attempt, read_at, summary) VALUES ($1, now(), 1, now(), '{}')";
    sqlx::query(summary).bind(&id).execute(&site.world.pool).await.unwrap();
    let body = site.page(&format!("/console/submissions/{id}")).await.body;
    assert!(body.contains("had run no job when it was asked last") && !body.contains("0 succeeded"), "{body}");
}

#[sqlx::test]
async fn lists_are_filtered_and_paged_by_their_address(pool: PgPool) {
    let site = Site::start(pool).await;
    let ids = site.submit(5).await;
    site.set(&ids[0], "owner = 'alice', name = 'etl-1'").await;
    let shown = async |query: &str| {
        let answer = site.page(&format!("/console/submissions{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.body);
        let rows: Vec<String> =
            ids.iter().filter(|id| answer.body.contains(&format!("<tr id=\"{id}\""))).cloned().collect();
        (rows, answer.body)
    };
    assert_eq!(shown("").await.0, ids);
    assert_eq!(
        shown("?owner=alice&name=&namespace=&label=").await.0,
        ids[..1],
        "empty fields of the form stand for nothing"
    );
    assert_eq!(shown("?state=FAILED").await.0, ids[..0]);
    assert_eq!(shown("?name=etl").await.0, ids[..1]);
    assert_eq!(shown("?nameContains=TL&principal=").await.0, ids[..1]);
    assert_eq!(shown("?failureCode=QUEUED").await.0, ids);
    let (_, body) = shown("?state=FAILED&owner=alice").await;
    assert!(body.contains("aria-current=\"true\">Failed"), "the group that has it: {body}");
    for without in ["owner=alice\" title=\"Remove", "state=FAILED\" title=\"Remove"] {
        assert!(body.contains(without), "each filter can be removed: {body}");
    }
    let (_, body) = shown("?owner=alice&id=driver-&label=a%3Db").await;
    assert!(body.contains("type=\"hidden\" name=\"id\" value=\"driver-\""), "the form keeps what it has no field for");
    assert!(body.contains("All <span class=\"count\">0</span>"), "{body}");
    let (first, body) = shown("?limit=2&state=QUEUED").await;
    assert_eq!(first, ids[3..]);
    let next = body.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let (second, body) = shown(next.trim_start_matches("submissions")).await;
    assert_eq!(second, ids[1..3]);
    assert!(body.contains(">Newest<"));
}

#[sqlx::test]
async fn a_row_says_why_it_failed_whose_it_is_and_what_it_is_labelled(pool: PgPool) {
    let site = Site::start(pool).await;
    let ids = site.submit(3).await;
    let labels = "labels = '{\"a\": \"1\", \"b\": \"<b>\", \"c\": \"3\", \"d\": \"4\"}'";
    let failed = "state = 'FAILED', exit_code = 1, reason = 'Error', finished_at = now(), \
                  message = 'the driver exited with code 1 (Error): ValueError: no such column: x'";
    site.set(&ids[0], &format!("{failed}, {labels}")).await;
    site.set(&ids[1], "owner = 'carol'").await;
    let body = site.page("/console/submissions").await.body;
    let rows: Vec<&str> = body.split("<tr id=").skip(1).collect();
    assert!(
        rows[2].contains("<p class=\"cause\" title=\"the driver exited with code 1 (Error): ValueError"),
        "{}",
        rows[2]
    );
    assert!(rows[2].contains("><bdi>ValueError: no such column: x</bdi></p>"), "{}", rows[2]);
    assert!(rows[2].contains("submissions?label=b%3D%3Cb%3E") && rows[2].contains("title=\"d=4\">+1<"), "{}", rows[2]);
    assert!(!rows[0].contains("cause"), "{}", rows[0]);
    // The key's name, its id beside it, and the owner only where it is another one.
    assert!(
        rows[0].contains("title=\"Submissions of key:") && rows[0].contains("<bdi>admin-all</bdi></a></td>"),
        "{}",
        rows[0]
    );
    assert!(rows[1].contains("<span class=\"owner\" title=\"Owner\"><bdi>carol</bdi></span>"), "{}", rows[1]);
    for (tab, count) in [("All", 3), ("Waiting", 2), ("Failed", 1), ("Finished", 0)] {
        assert!(body.contains(&format!("{tab} <span class=\"count\">{count}</span>")), "{tab}: {body}");
    }
    let narrowed = site.page("/console/submissions?failureCode=APPLICATION_ERROR&state=FAILED,ERROR,LOST").await.body;
    assert!(narrowed.contains(&ids[0]) && !narrowed.contains(&ids[1]), "{narrowed}");
    assert!(narrowed.contains("value=\"APPLICATION_ERROR\" selected"), "{narrowed}");
}

#[sqlx::test]
async fn bad_input_gets_a_page_with_title_remedy_and_request_id(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(1).await.remove(0);
    for (path, status, words) in [
        ("/console/submissions/driver-1", 404, "no longer kept"),
        ("/console/submissions/<script>", 404, "&lt;script&gt;"),
        ("/console/nothing", 404, "There is nothing at"),
        ("/console/submissions?limit=0", 400, "0 is not between 1 and 500"),
        ("/console/submissions?nmae=x", 400, "did you mean"),
        ("/console/submissions?cursor=abc", 400, "first page of the list"),
        ("/console/submissions?state=%00", 400, "NUL"),
        (&format!("/console/submissions/{id}/logs?attempt=x"), 400, "number of an attempt"),
        (&format!("/console/submissions/{id}/kill"), 405, "does not allow GET"),
    ] {
        let answer = site.page(&path.replace('<', "%3C").replace('>', "%3E")).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.headers["content-type"].starts_with("text/html"), "{path}");
        for part in ["<h1>", words, &answer.headers["x-request-id"]] {
            assert!(answer.body.contains(part), "{path} lacks {part}: {}", answer.body);
        }
    }
}

#[sqlx::test]
async fn a_page_of_another_site_kills_nothing(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(1).await.remove(0);
    for (path, body) in [
        (format!("/console/submissions/{id}/kill"), String::new()),
        ("/console/submissions/kill".to_owned(), format!("id={id}")),
    ] {
        let post = |origin: &str, fetch_site: &str| {
            let request =
                Request::post(path.as_str()).header(header::HOST, "gateway.svc").header(header::ORIGIN, origin);
            let request = request
                .header("sec-fetch-site", fetch_site)
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
            request
                .header(header::AUTHORIZATION, format!("Bearer {}", site.key))
                .body(Body::from(body.clone()))
                .unwrap()
        };
        for (origin, fetch_site) in
            [("https://evil.example", "cross-site"), ("null", "cross-site"), ("http://other.gateway.svc", "same-site")]
        {
            let answer = site.world.answer(post(origin, fetch_site)).await;
            assert_eq!(answer.status, 403, "{path} from {origin}");
            assert!(
                answer.headers["content-type"].starts_with("text/html")
                    && answer.body.contains("SPARKGATE_CORS_ORIGINS")
            );
        }
    }
    assert_eq!(site.world.get(&site.key, &format!("/v1/submissions/{id}")).await.json()["state"], "QUEUED");
}

#[sqlx::test]
async fn a_form_kills_many_and_says_what_became_of_each(pool: PgPool) {
    let site = Site::start(pool).await;
    let ids = site.submit(3).await;
    let post = async |body: String| {
        let request = Request::post("/console/submissions/kill").header(header::HOST, "gateway");
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", site.key));
        site.world.answer(request.body(Body::from(body)).unwrap()).await
    };
    let answer = post(format!("id={}&id={}&id=driver-1&back=owner%3Da%26cursor%3Dx", ids[0], ids[1])).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains("Kill requested for 2 of 3") && answer.body.contains("there is no such submission"));
    assert!(answer.body.contains("href=\"../submissions?owner=a\""));
    let answer = post(format!("id={}", ids[0])).await;
    assert!(answer.body.contains("has already ended"));
    assert_eq!(post(String::new()).await.status, 400);
    assert_eq!(site.world.get(&site.key, &format!("/v1/submissions/{}", ids[2])).await.json()["state"], "QUEUED");
}

#[sqlx::test]
async fn a_failure_is_explained_with_what_to_do(pool: PgPool) {
    let site = Site::start(pool).await;
    let ids = site.submit(3).await;
    let ended = "started_at = created_at + interval '3 seconds', finished_at = clock_timestamp(), pod_uid = 'uid'";
    site.set(
        &ids[0],
        &format!("state = 'FAILED', exit_code = 137, reason = 'OOMKilled', message = 'the driver exited', {ended}"),
    )
    .await;
    site.set(&ids[1], &format!("state = 'FAILED', exit_code = 1, reason = 'Error', message = 'ClassNotFoundException: org.example.Mian', {ended}")).await;
    site.set(&ids[2], "state = 'PENDING', reason = 'ErrImagePull', message = 'no such image'").await;
    for (id, words) in [
        (&ids[0], ["OUT_OF_MEMORY", "Raise spark.driver.memory", "SIGKILL"]),
        (&ids[1], ["APPLICATION_ERROR", "The message has the exception", "org.example.Mian"]),
        (&ids[2], ["IMAGE_PULL", "image.pullSecrets", "no such image"]),
    ] {
        let page = site.page(&format!("/console/submissions/{id}")).await.body;
        words.iter().for_each(|word| assert!(page.contains(word), "{id} lacks {word}"));
    }
    let overview = site.page("/console/overview").await.body;
    for word in ["OUT_OF_MEMORY", "APPLICATION_ERROR", "0.0 % finished", ">3s<", "Top users"] {
        assert!(overview.contains(word), "{word}: {overview}");
    }
}

#[sqlx::test]
async fn files_are_kept_for_ever_under_their_digest_and_pages_are_compressed(pool: PgPool) {
    let site = Site::start(pool).await;
    let page = site.page("/console/submissions").await;
    assert_eq!(page.headers["cache-control"], "private, no-cache");
    let script = page.body.split("src=\"").find(|part| part.contains("console.js")).unwrap().split('"').next().unwrap();
    let answer = site.page(&format!("/console/{script}")).await;
    assert_eq!((answer.status, answer.headers["cache-control"].as_str()), (200, "public, max-age=31536000, immutable"));
    assert_eq!(answer.headers["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(site.page("/console/assets/of-another-release/console.js").await.headers["cache-control"], "no-cache");
    // All that the first paint needs.
    let mut bytes = page.body.len();
    for file in ["console.css", "console.js", "live.js", "list.js", "icon.svg"] {
        bytes += site.page(&format!("/console/assets/x/{file}")).await.body.len();
    }
    assert!(bytes < 100 << 10, "{bytes}");
}

#[sqlx::test]
async fn the_configuration_has_origins_and_differences(pool: PgPool) {
    let access = "
authentication: {}
tenants:
  red:
    namespaces: [red]
    defaults: {spark.of.tenant: a, spark.overridden: b}
    properties: {spark.forced: c}
";
    let world = World::new(pool, access).await;
    let key = world.key(Role::Admin, None).await;
    let submit = async |properties: Value| {
        let mut job = job("red");
        job["sparkProperties"].as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
        let answer = world.send(Some(&key), "POST", "/v1/submissions", Some(&job)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let one = submit(json!({"spark.overridden": "own", "spark.forced": "mine", "spark.executor.cores": "1"})).await;
    let other = submit(json!({"spark.executor.cores": "2"})).await;
    let page = async |query: &str| world.get(&key, &format!("/console/submissions/{one}/configuration{query}")).await;
    let body = page("").await.body;
    for (property, value, origin) in [
        ("spark.overridden", "own", "request"),
        ("spark.forced", "c", "forced"),
        ("spark.of.tenant", "a", "tenant"),
        ("spark.kubernetes.container.image", "spark", "spark-defaults"),
        ("spark.kubernetes.submitInDriver", "true", "spark-submit"),
    ] {
        let row = format!(
            "<tr><th scope=\"row\"><bdi>{property}</bdi></th><td class=\"wide\"><bdi>{value}</bdi></td><td class=\"quiet\"><bdi>{origin}</bdi></td></tr>"
        );
        assert!(body.contains(&row), "{property}: {body}");
    }
    assert!(body.contains(&format!("<option value=\"{other}\"")) && !body.contains("The other run"));
    let body = page(&format!("?with={other}")).await.body;
    for (property, here, there) in [("spark.executor.cores", "1", "2"), ("spark.overridden", "own", "b")] {
        let row = format!(
            "<tr><th scope=\"row\"><bdi>{property}</bdi></th><td><bdi>{here}</bdi></td><td><bdi>{there}</bdi></td></tr>"
        );
        assert!(body.contains(&row), "{property}: {body}");
    }
    assert!(!body.contains("<bdi>spark.forced</bdi></th><td><bdi>"), "both have the same");
    assert_eq!(page("?with=driver-20260101000000-9999").await.status, 404);
    assert_eq!(page("?with=x").await.status, 404);
    sqlx::query("UPDATE submissions SET origins = NULL").execute(&world.pool).await.unwrap();
    assert!(page("").await.body.contains("request or defaults"), "that of an earlier release");
}

#[sqlx::test]
async fn a_run_of_another_tenant_can_not_be_compared(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let (admin, red) = (world.key(Role::Admin, None).await, world.key(Role::Viewer, Some("red")).await);
    let (own, foreign) = (world.submit(&admin, "red").await, world.submit(&admin, "blue").await);
    let page =
        async |with: &str| world.get(&red, &format!("/console/submissions/{own}/configuration?with={with}")).await;
    assert!(!page("").await.body.contains(&foreign));
    assert_eq!(page(&foreign).await.status, 404);
}

#[sqlx::test]
async fn callers_of_several_tenants_see_and_choose_them(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let (admin, red) = (world.key(Role::Admin, None).await, world.key(Role::Viewer, Some("red")).await);
    let (own, foreign) = (world.submit(&admin, "red").await, world.submit(&admin, "blue").await);
    let list = async |key: &str, query: &str| {
        let body = world.get(key, &format!("/console/submissions{query}")).await.body;
        let rows = [&own, &foreign].map(|id| body.contains(&format!("<tr id=\"{id}\"")));
        (rows, body.contains("<th class=\"tenant\""), body.contains("<select name=\"tenant\""))
    };
    assert_eq!(list(&admin, "").await, ([true, true], true, true));
    assert_eq!(list(&admin, "?tenant=blue").await.0, [false, true]);
    assert_eq!(list(&admin, "?tenant=none").await.0, [false, false]);
    assert_eq!(list(&red, "").await, ([true, false], false, false));
    assert_eq!(list(&red, "?tenant=blue").await.0, [false, false]);
    let of_api = world.get(&admin, "/v1/submissions?tenant=red").await.json();
    assert_eq!((of_api["items"].as_array().unwrap().len(), &of_api["items"][0]["id"]), (1, &json!(own)));
}

#[sqlx::test]
async fn the_operator_page_shows_what_checks_found(pool: PgPool) {
    let site = Site::start(pool).await;
    let body = loop {
        let page = site.page("/console/operator").await;
        assert_eq!(page.status, 200);
        if !page.body.contains("They are running.") {
            break page.body;
        }
        tokio::task::yield_now().await;
    };
    for part in
        ["kubernetes.admission", "database.encryption-keys", "has no tag, which means `latest`", "By this replica"]
    {
        assert!(body.contains(part), "{part}: {body}");
    }
}

#[sqlx::test]
async fn the_operator_page_shows_which_tenants_hold_the_streams(pool: PgPool) {
    let world = World::new(pool, TENANTS).await;
    let (admin, red) = (world.key(Role::Admin, None).await, world.key(Role::Viewer, Some("red")).await);
    let id = world.submit(&admin, "red").await;
    let page = async || world.get(&admin, "/console/operator").await.body;
    // Subscribers and log readers of a tenant, each with its cap.
    let held = |body: &str, tenant: &str| -> Vec<String> {
        let (_, row) = body.split_once(&format!("<tr><th scope=\"row\"><bdi>{tenant}</bdi></th>")).unwrap();
        let cells = row.split("</tr>").next().unwrap().split("<td class=\"number\">").skip(8);
        cells.map(|cell| cell.split("</td>").next().unwrap().to_owned()).collect()
    };
    let body = page().await;
    assert!(body.contains("Subscribers: 0. Log readers: 0.") && body.contains("are those of this replica"), "{body}");
    assert_eq!(held(&body, "red"), ["0", "–", "0", "–"]);
    let logs = format!("/v1/submissions/{id}/logs?follow=true");
    let streams =
        [world.open(&red, "/v1/events").await, world.open(&red, "/v1/events").await, world.open(&red, &logs).await];
    let of_all = world.open(&admin, "/v1/events").await;
    assert!(streams.iter().all(|response| response.status() == 200));
    let body = page().await;
    assert!(body.contains("Subscribers: 3. Log readers: 1."), "{body}");
    assert_eq!(
        (held(&body, "red"), held(&body, "blue")[0].as_str()),
        (["2", "–", "1", "–"].map(str::to_owned).into(), "0")
    );
    drop((streams, of_all));
    while !page().await.contains("Subscribers: 0. Log readers: 0.") {
        tokio::task::yield_now().await;
    }
}
