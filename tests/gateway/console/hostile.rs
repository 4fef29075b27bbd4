//! A hostile job: markup in every text that it controls stays text.

use axum::{
    body::Body,
    http::{Request, header},
};
use serde_json::json;
use sparkgate::{
    store::{LogEnd, Store},
    submission::PodEvent,
};
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;

use crate::console::site::{Site, pages_of};

/// Attempts to run a script, each of which would call `hit()`.
const ATTEMPTS: [&str; 25] = [
    "<script>hit()</script>",
    "<ScRiPt>hit()</sCrIpT>",
    "<img src=x onerror=hit()>",
    "<img/src=x/onerror=hit()>",
    "<svg onload=hit()>",
    "<svg><script>hit()</script></svg>",
    "<svg><animate onbegin=hit() attributeName=x dur=1s>",
    "<body onload=hit()>",
    "<iframe srcdoc='<script>parent.hit()</script>'>",
    "<iframe src=javascript:hit()>",
    "<a href=javascript:hit() id=x>x</a>",
    "<details open ontoggle=hit()>",
    "<input autofocus onfocus=hit()>",
    "<video><source onerror=hit()>",
    "<math><mtext><style><img src=x onerror=hit()></style></mtext></math>",
    "<object data=javascript:hit()>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;javascript:hit()'>",
    "<form action=javascript:hit()><button autofocus>",
    "<template><script>hit()</script></template>",
    "<style>@import'//evil.example/x.css'</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "javascript:hit()",
    "{{constructor.constructor('hit()')()}}",
    "${hit()}",
];

/// Ways out of the text around an attempt.
const WAYS_OUT: [(&str, &str); 8] = [
    ("", ""),
    ("\">", ""),
    ("'>", ""),
    ("</title></textarea></pre>", ""),
    ("--><!--", "-->"),
    ("</script>", "<script>"),
    ("\u{202e}\u{0}\u{1b}[31m\u{7f}", "\u{200b}"),
    ("\" autofocus onfocus=hit() x=\"", "&lt;&#60;&quot;"),
];

/// One of so many attempts has its own pages opened in a browser.
const SINGLE: usize = 19;

fn corpus() -> Vec<String> {
    let corpus: Vec<String> = WAYS_OUT
        .iter()
        .flat_map(|(before, after)| ATTEMPTS.map(|attempt| format!("{before}{attempt}{after}")))
        .collect();
    assert_eq!(corpus.len(), 200);
    corpus
}

/// Writes a text to every field that a job, its submitter or its pods control. Postgres stores no NUL. Only some logs have a `long`
/// line, because it takes longer to show than all else.
async fn poison(site: &Site, id: &str, text: &str, long: bool) {
    let (text, pool) = (&text.replace('\0', ""), &site.world.pool);
    let request = json!({
        "clientSparkVersion": text, "appResource": text, "mainClass": text, "appArgs": [text],
        "sparkProperties": {text: text}, "environmentVariables": {text: text}, "proxyUser": text,
        "driverPodTemplate": text,
    });
    let label = json!({text: text});
    let row = "UPDATE submissions SET name = $2, owner = $2, principal = $2, spark_version = $2, node = $2, pod_ip = $2,
               reason = $2, message = $2, labels = $3, request = $4, state = 'FAILED', exit_code = 1, pod_uid = 'uid', attempt = 2,
               started_at = created_at, finished_at = clock_timestamp(), executors_failed = 1,
               names = names || jsonb_build_object('driverPod', $2::text, 'appId', $2::text) WHERE id = $1";
    sqlx::query(row).bind(id).bind(text).bind(&label).bind(&request).execute(pool).await.unwrap();
    for statement in [
        "INSERT INTO attempts (submission_id, attempt, state, exit_code, reason, message, names, node, queued_at, finished_at)
         SELECT id, 1, 'FAILED', 1, $2, $2, names, $2, created_at, created_at FROM submissions WHERE id = $1 ON CONFLICT DO NOTHING",
        "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state, reason, message, node, created_at, started_at)
         VALUES ($1, 2, 1, $2, 'uid', 'RUNNING', $2, $2, $2, now(), now())",
        "UPDATE submission_events SET reason = $2, message = $2 WHERE submission_id = $1",
        "UPDATE audit SET principal = $2, detail = $2, address = $2, request_id = $2, action = $2 WHERE submission_id = $1",
    ] {
        sqlx::query(statement).bind(id).bind(text).execute(pool).await.unwrap();
    }
    let said = json!({
        "latest": [{"id": 1, "name": text, "status": text, "tasks": 2, "completed_tasks": 1}],
        "failures": [{"stage": 1, "attempt": 0, "name": text, "reason": text}],
    });
    let summary = "INSERT INTO spark_summaries (submission_id, next_at, attempt, read_at, summary) VALUES ($1, now(), 2, now(), $2)
                   ON CONFLICT (submission_id) DO UPDATE SET attempt = 2, read_at = now(), summary = excluded.summary";
    sqlx::query(summary).bind(id).bind(&said).execute(pool).await.unwrap();
    let line = format!("2026-01-02T03:04:05.000000000Z {text}\u{1b}[1;31m{text}\u{1b}[0m\n");
    let repeated = if long { 1 + (1 << 20) / text.len() } else { 2 };
    let long = format!("2026-01-02T03:04:05.000000000Z {}\n", text.repeat(repeated));
    let event = PodEvent { at: None, kind: text.clone(), reason: text.clone(), message: text.clone(), count: 2 };
    let log = LogEnd { text: (line + &long).into_bytes(), cut: true };
    Store::new(pool.clone()).keep_log(&id.parse().unwrap(), 2, Some(log), &[event]).await.unwrap();
}

/// Returns a tag without the values of its attributes.
fn outside_of_quotes(tag: &str) -> String {
    let parts = tag.split('"').step_by(2).scan(false, |is_over, part| {
        let shown = (!*is_over).then(|| part.split('>').next().unwrap().to_owned());
        *is_over |= part.contains('>');
        shown
    });
    parts.collect()
}

/// Returns the pages that show a submission.
fn pages(id: &str) -> Vec<String> {
    let mut pages: Vec<String> =
        ["submissions?limit=500", "overview", "operator"].map(|page| format!("/console/{page}")).into();
    pages.extend(pages_of(id));
    pages
}

#[sqlx::test]
async fn two_hundred_attempts_in_every_field_are_text(pool: PgPool) {
    let site = Site::start(pool).await;
    for (number, text) in corpus().into_iter().enumerate() {
        let id = site.submit(1).await.remove(0);
        // One of each way out.
        poison(&site, &id, &text, number % (ATTEMPTS.len() + 1) == 0).await;
        for page in pages(&id) {
            let answer = site.page(&page).await;
            assert_eq!(answer.status, 200, "{page} with {text:?}: {}", answer.body);
            let body = answer.body.to_lowercase();
            // Elements of the page are those of its templates: each begins with one of these names.
            for tag in body.split('<').skip(1) {
                let name: String =
                    tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
                let is_ours = tag.starts_with("script type=\"module\" src=\"")
                    || tag.starts_with("/script")
                    || !matches!(
                        name.as_str(),
                        "script"
                            | "iframe"
                            | "object"
                            | "base"
                            | "style"
                            | "math"
                            | "video"
                            | "source"
                            | "template"
                            | "animate"
                    );
                assert!(is_ours && !outside_of_quotes(tag).contains("hit()"), "{page} with {text:?}: <{tag}");
            }
            let hidden =
                |c: char| (c < ' ' && c != '\n' && c != '\t') || matches!(c, '\u{7f}' | '\u{202e}' | '\u{200b}');
            assert!(!answer.body.contains(hidden), "{page} with {text:?}");
        }
        sqlx::query("DELETE FROM submissions").execute(&site.world.pool).await.unwrap();
    }
}

#[sqlx::test]
async fn no_attempt_runs_in_a_browser(pool: PgPool) {
    let site = Site::start(pool).await;
    let mut browser = Browser::start(&site.key).await;
    let hit = "window.hits = 0; window.hit = () => { window.hits += 1; };";
    browser.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": hit})).await;
    // All attempts are in one list; single pages show those with the most ways out.
    let corpus = corpus();
    let mut ids = Vec::new();
    for (number, text) in corpus.iter().enumerate() {
        let id = site.submit(1).await.remove(0);
        poison(&site, &id, text, number % SINGLE == 0).await;
        ids.push(id);
    }
    let whole = corpus.concat();
    let id = site.submit(1).await.remove(0);
    poison(&site, &id, &whole[..whole.floor_char_boundary(3500)], true).await;
    ids.push(id);
    let single = ids.iter().step_by(SINGLE).chain(ids.last()).flat_map(|id| pages_of(id));
    for page in ["submissions?limit=500", "overview"].map(|page| format!("/console/{page}")).into_iter().chain(single) {
        browser.open(&site.url(&page)).await;
        if page.ends_with("/logs") {
            browser.until("document.querySelectorAll('#log .line').length >= 2 || !document.getElementById('log-state').textContent.includes('Following')").await;
        }
        assert_eq!(browser.eval("window.hits").await, 0, "{page}");
        let scripts = "[...document.querySelectorAll('script, iframe, object, base, style, [onerror], [onload], [onfocus]')].length";
        assert_eq!(browser.eval(scripts).await, 1, "{page}: one script is the page's own");
        // A violation would mean that something of a job was an element.
        assert_eq!(browser.faults().await, [""; 0], "{page}");
        assert_eq!(browser.dialogs(), [""; 0], "{page}");
    }
}

#[sqlx::test]
async fn what_a_caller_sends_comes_back_as_text(pool: PgPool) {
    let site = Site::start(pool).await;
    for text in corpus() {
        let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let paths = [
            "/console/submissions/",
            "/console/",
            "/console/submissions?name=",
            "/console/submissions?cursor=",
            "/console/submissions?x=1&",
        ];
        for path in paths {
            let answer = site.page(&format!("{path}{}", encoded.replace('+', "%20"))).await;
            assert!(
                !ATTEMPTS[..22].iter().any(|attempt| answer.body.contains(attempt)),
                "{path} {text:?}: {}",
                answer.body
            );
        }
        let request = Request::post("/console/submissions/kill").header(header::HOST, "gateway");
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", site.key));
        let answer = site.world.answer(request.body(Body::from(format!("id={encoded}&back={encoded}"))).unwrap()).await;
        assert!(!ATTEMPTS[..22].iter().any(|attempt| answer.body.contains(attempt)), "{}", answer.body);
    }
}
