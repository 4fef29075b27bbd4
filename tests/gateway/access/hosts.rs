//! Under which names browsers reach the gateway: a page whose own name leads to the gateway's address (DNS rebinding) does nothing.

use std::collections::BTreeSet;

use axum::{
    Router,
    body::Body,
    http::{Request, Version, header},
};
use http_body_util::BodyExt;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sparkgate::{
    api::{BrowserSettings, HttpSettings, livy_listener, router, spark_listener},
    server::{ServerSettings, serve},
    service::Service,
};
use sqlx::PgPool;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::access::world::{World, spark_job};

const FILE: &str = "
authentication:
  sparkListener: {listen: \"127.0.0.1:0\", subject: spark-submit}
  oidc:
  - issuer: https://issuer.example.org
    audience: sparkgate
    console: {clientId: console, externalUrl: 'https://Gate.example.org/spark'}
tenants:
  red:
    namespaces: [red]
    members: [{role: submitter, subjects: [\"listener:spark-submit\"]}]
";

/// What a page gives itself away by. Over plain HTTP a browser adds no `Sec-Fetch-*`, and no `Origin` to what a page reads of its own
/// origin.
const OF_BROWSERS: [(&str, &str); 5] = [
    ("origin", "http://HOST"),
    ("sec-fetch-site", "same-origin"),
    ("referer", "http://HOST/page"),
    ("accept-language", "de"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
];

fn settings(hosts: &[&str], for_all_clients: bool) -> HttpSettings {
    let hosts: BTreeSet<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let browser = BrowserSettings { hosts, for_all_clients, origins: Vec::new() };
    HttpSettings { browser, ..HttpSettings::default() }
}

/// The listeners of a gateway, with a path that each serves.
fn listeners(service: &Service, settings: &HttpSettings) -> [(Router, &'static str); 4] {
    let all = router(service.clone(), settings.clone()).unwrap();
    [
        (all.clone(), "/v1/submissions/create"),
        (all, "/v1/submissions"),
        (spark_listener(service.clone(), settings.clone()).unwrap(), "/v1/submissions/create"),
        (livy_listener(service.clone(), settings.clone()).unwrap(), "/batches"),
    ]
}

async fn ask(router: &Router, request: Request<Body>) -> (u16, String) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    (status, String::from_utf8_lossy(&response.into_body().collect().await.unwrap().to_bytes()).into_owned())
}

/// Returns whether a request is refused for its host.
fn is_refused((status, text): &(u16, String)) -> bool {
    assert_eq!(*status == 403, text.contains("SPARKGATE_ALLOWED_HOSTS"), "{status} {text}");
    *status == 403
}

#[sqlx::test]
async fn a_page_whose_name_leads_to_the_gateway_reaches_no_listener(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    for (router, path) in listeners(&world.service, &settings(&["sparkgate.example"], false)) {
        for (host, is_ours) in [
            ("evil.example:6066", false),
            ("EVIL.example.", false),
            ("xn--evl-zma.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("svc", false),
            ("gateway", false),
            ("svc.cluster.local.evil.example", false),
            ("a b", false),
            ("127.0.0.1:6066", true),
            ("10.0.0.7", true),
            ("[::1]:6066", true),
            ("LOCALHOST.:6066", true),
            ("spark.localhost", true),
            ("sparkgate.spark.svc:6066", true),
            ("sparkgate.spark.svc.cluster.local", true),
            ("Sparkgate.example", true),
            ("gate.EXAMPLE.org", true),
        ] {
            for method in ["GET", "POST"] {
                let request = || Request::builder().method(method).uri(path).header(header::HOST, host);
                let sent = ask(&router, request().body(Body::empty()).unwrap()).await;
                assert!(!is_refused(&sent), "no browser: {method} {path} of {host}");
                for (name, value) in OF_BROWSERS {
                    let request = request().header(name, value.replace("HOST", host));
                    let sent = ask(&router, request.body(Body::empty()).unwrap()).await;
                    assert_eq!(is_refused(&sent), !is_ours, "{method} {path} of {host} with {name}: {sent:?}");
                }
            }
        }
        // Without `Host`, and with a URI that names another host than `Host`.
        let request = || Request::post(path).header("origin", "http://evil.example");
        assert!(is_refused(&ask(&router, request().version(Version::HTTP_10).body(Body::empty()).unwrap()).await));
        for (uri, host) in [("http://evil.example", "localhost"), ("http://localhost", "evil.example")] {
            let request = Request::post(format!("{uri}{path}")).header("origin", uri).header(header::HOST, host);
            assert!(is_refused(&ask(&router, request.body(Body::empty()).unwrap()).await), "{uri} {host}");
        }
    }
}

#[sqlx::test]
async fn a_gateway_on_loopback_is_reached_under_its_own_names_only(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    for (router, path) in listeners(&world.service, &settings(&[], true)) {
        for (host, is_ours) in [("evil.example", false), ("localhost", true), ("gate.example.org", true)] {
            let request = Request::get(path).header(header::HOST, host).body(Body::empty()).unwrap();
            assert_eq!(is_refused(&ask(&router, request).await), !is_ours, "{path} of {host}");
        }
    }
}

#[sqlx::test]
async fn a_page_submits_nothing_over_a_connection(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let router = spark_listener(world.service.clone(), settings(&[], false)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let _stop = stop.clone().drop_guard();
    tokio::spawn(serve(listener, router, ServerSettings::default(), stop));
    let body = spark_job("red").to_string();
    let told =
        format!("origin: http://evil.example\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    for (line, host, status) in [
        ("POST /v1/submissions/create HTTP/1.1", "host: evil.example\r\n", "403"),
        ("POST http://evil.example/v1/submissions/create HTTP/1.1", "host: evil.example\r\n", "403"),
        ("POST /v1/submissions/create HTTP/1.0", "", "403"),
        ("POST /v1/submissions/create HTTP/1.0", "host: evil.example\r\n", "403"),
        ("POST /v1/submissions/create HTTP/1.1", "host: localhost\r\n", "403"),
    ] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(format!("{line}\r\n{host}{told}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{line} {host}: {answer}");
    }
    // HTTP/2 without TLS.
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("http://evil.example/v1/submissions/create").header("origin", "http://evil.example");
    let answer = sender.send_request(request.body(body).unwrap()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (403, Version::HTTP_2));
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&world.pool).await.unwrap();
    assert_eq!(count, 0);
}

#[sqlx::test]
async fn pages_of_other_origins_write_nothing_unless_an_operator_names_them(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let host = (header::HOST.as_str(), "localhost:6066");
    let (origin, settings) = ("https://dashboard.example", settings(&[], true));
    let router = spark_listener(world.service.clone(), settings.clone()).unwrap();
    for (headers, is_refused) in [
        (vec![host], false),
        (vec![host, ("origin", "http://localhost:6066")], false),
        (vec![host, ("origin", "http://localhost:6066"), ("sec-fetch-site", "same-origin")], false),
        (vec![host, ("origin", origin), ("sec-fetch-site", "cross-site")], true),
        (vec![host, ("origin", origin)], true),
        (vec![host, ("origin", "null")], true),
        (vec![host, ("origin", "http://localhost:8080"), ("sec-fetch-site", "same-site")], true),
        (vec![host, ("sec-fetch-site", "cross-site")], true),
    ] {
        let request = Request::post("/v1/submissions/create");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let (status, answer) = ask(&router, request.body(Body::empty()).unwrap()).await;
        assert_eq!(status == 403, is_refused, "{headers:?}: {answer}");
    }
    let browser = BrowserSettings { origins: vec![origin.to_owned()], ..settings.browser.clone() };
    let router = spark_listener(world.service.clone(), HttpSettings { browser, ..settings }).unwrap();
    let request = Request::post("/v1/submissions/create").header(host.0, host.1).header("origin", origin);
    let response =
        router.oneshot(request.header("sec-fetch-site", "cross-site").body(Body::empty()).unwrap()).await.unwrap();
    assert_ne!(response.status(), 403);
    assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], origin);
}
