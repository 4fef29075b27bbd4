//! A submission and its files in one request.

use axum::{
    body::{Body, Bytes},
    http::Request,
};
use futures::stream;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::in_memory::{Answer, send};
use crate::resources::{
    files::{LARGEST, World, sha256},
    world::{count, is_problem, job},
};

const BOUNDARY: &str = "------------------------d74496d66958873e";

/// A form as curl writes it.
#[derive(Default, Clone)]
struct Form(Vec<u8>);

impl Form {
    fn of(request: &Value) -> Self {
        Self::default().part("name=\"request\"", request.to_string().as_bytes())
    }

    fn part(mut self, disposition: &str, content: &[u8]) -> Self {
        let head =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\nContent-Type: x/y\r\n\r\n");
        self.0.extend_from_slice(head.as_bytes());
        self.0.extend_from_slice(content);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    fn file(self, name: &str, content: &[u8]) -> Self {
        self.part(&format!("name=\"file\"; filename=\"{name}\""), content)
    }

    fn ended(mut self) -> Vec<u8> {
        self.0.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.0
    }
}

impl World {
    async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let request = Request::post(path).header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        send(&self.api, request.body(body.into()).unwrap()).await
    }

    async fn form(&self, form: Form) -> Answer {
        self.post("/v1/submissions", &[], form.ended()).await
    }

    /// Returns the request of a submission as it was accepted.
    async fn accepted(&self, answer: &Answer) -> Value {
        assert_eq!(answer.status, 201, "{answer:?}");
        let path = format!("/v1/submissions/{}/request", answer.json()["id"].as_str().unwrap());
        self.ask("GET", &path, &[]).await.json()
    }
}

fn request() -> Value {
    job(json!({
        "appResource": "sparkgate-file:my%20job.py",
        "sparkProperties": {"spark.files": "local:///x,sparkgate-file:conf.yaml#renamed"},
    }))
}

fn files(request: &Value) -> Form {
    Form::of(request).file("my job.py", b"print(1)").file("conf.yaml", b"a: b")
}

#[sqlx::test]
async fn a_submission_brings_its_files(pool: PgPool) {
    let world = World::new(pool).await;
    let (script, conf) = (sha256(b"print(1)"), sha256(b"a: b"));
    let accepted = world.accepted(&world.form(files(&request())).await).await;
    assert_eq!(accepted["appResource"], format!("sparkgate-file:/{script}/my%20job.py"));
    let expected = format!("local:///x,sparkgate-file:/{conf}/conf.yaml#renamed");
    assert_eq!(accepted["sparkProperties"]["spark.files"], expected);
    assert_eq!(world.ask("GET", &format!("/v1/files/{script}"), &[]).await.body, "print(1)");
    let uses: i64 = sqlx::query_scalar("SELECT count(*) FROM file_uses").fetch_one(&world.pool).await.unwrap();
    assert_eq!((world.objects(), uses), (2, 2));

    // The tenant has the content already; a form may have no file at all.
    world.accepted(&world.form(files(&request())).await).await;
    world.accepted(&world.form(Form::of(&job(json!({})))).await).await;
    assert_eq!(world.objects(), 2);
    let plan = world.post("/v1/submissions?dryRun=true", &[], files(&request()).ended()).await;
    assert_eq!((plan.status, count(&world.pool).await), (200, 3));
}

#[sqlx::test]
async fn a_form_with_a_key_is_safe_to_repeat(pool: PgPool) {
    let world = World::new(pool).await;
    let key = [("idempotency-key", "etl/2026-01-02")];
    let post = async |form: Form| world.post("/v1/submissions", &key, form.ended()).await;
    let first = post(files(&request())).await;
    let again = post(files(&request())).await;
    assert_eq!((first.status, again.status, again.header("idempotency-replayed")), (201, 200, Some("true")));
    assert_eq!(first.json()["id"], again.json()["id"]);
    // Another content is another request.
    let other = Form::of(&request()).file("my job.py", b"print(2)").file("conf.yaml", b"a: b");
    is_problem(&post(other).await, 422, "idempotency-key-reused");
    assert_eq!(count(&world.pool).await, 1);
}

#[sqlx::test]
async fn nothing_is_accepted_unless_the_form_is_complete(pool: PgPool) {
    let world = World::new(pool).await;
    let fields = |answer: &Answer| is_problem(answer, 400, "invalid-request")["errors"][0]["pointer"].clone();
    let missing = world.form(Form::of(&request()).file("my job.py", b"print(1)")).await;
    assert_eq!(fields(&missing), "#/sparkProperties/spark.files");
    let other = Form::of(&request()).file("conf.yaml", b"a: b");
    assert_eq!(fields(&world.form(other).await), "#/appResource");
    let malformed = job(json!({"appResource": "sparkgate-file:"}));
    assert_eq!(fields(&world.form(Form::of(&malformed)).await), "#/appResource");

    let head = Form::of(&request()).part(&format!("name=\"{}\"", "x".repeat(200_000)), b"").ended();
    let pieces = head.chunks(8 << 10).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)));
    let pieces = Body::from_stream(stream::iter(pieces.collect::<Vec<_>>()));
    let long = is_problem(&world.post("/v1/submissions", &[], pieces).await, 400, "invalid-request");
    assert!(long["detail"].as_str().unwrap().contains("head of a part"), "{long}");
    for (form, word) in [
        (files(&request()).file("other.py", b"x"), "doesn't use the file \"other.py\""),
        (files(&request()).file("conf.yaml", b"x"), "two files"),
        (files(&request()).part("name=\"more\"", b"x"), "part \"more\""),
        (files(&request()).part("name=\"file\"", b"x"), "no file name"),
        (Form::default().file("my job.py", b"x").part("name=\"request\"", b"{}"), "first part"),
        (Form::default(), "form"),
    ] {
        let problem = is_problem(&world.form(form).await, 400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{word}: {problem}");
    }
    is_problem(&world.form(Form::default().part("name=\"request\"", b"{")).await, 400, "invalid-json");
    is_problem(&world.form(Form::of(&job(json!({"mainClass": 3, "x": 1})))).await, 400, "invalid-request");
    let large = vec![0; usize::try_from(LARGEST).unwrap() + 1];
    let too_large = Form::of(&request()).file("my job.py", &large);
    is_problem(&world.form(too_large).await, 413, "request-too-large");
    let long = job(json!({"appArgs": ["x".repeat(9 << 20)]}));
    is_problem(&world.form(Form::of(&long)).await, 413, "request-too-large");

    // The client goes away in the middle of a file.
    let whole = files(&request()).ended();
    let pieces = [Ok(Bytes::from(whole[..whole.len() - 80].to_vec())), Err(std::io::Error::other("gone"))];
    let broken = world.post("/v1/submissions", &[], Body::from_stream(stream::iter(pieces))).await;
    is_problem(&broken, 400, "invalid-request");
    is_problem(&world.post("/v1/submissions", &[], whole[..whole.len() - 10].to_vec()).await, 400, "invalid-request");

    // The store goes away between two files.
    let (folder, aside) = (world.dir.path().to_owned(), world.dir.path().with_extension("aside"));
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "no directory").unwrap();
    let away = world.form(files(&request())).await;
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    is_problem(&away, 503, "files-unavailable");
    assert_eq!(count(&world.pool).await, 0);
    assert_eq!(world.form(files(&request())).await.status, 201);
}
