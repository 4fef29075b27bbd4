//! Addresses that webhooks must not reach: a listener counts the connections to it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use sparkgate::service::WebhookSettings;
use sparkgate_testing::wait::until;
use sqlx::PgPool;
use tokio::{net::TcpListener, task::JoinSet};

use crate::webhooks::world::Replica;

/// Hosts that aren't public. `P` is the port of the listeners on 127.0.0.1 and `::1`.
const HOSTS: [&str; 80] = [
    // This machine, in each notation of an address.
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "0",
    "0.0.0.0",
    "0x7f.0.0.1",
    "0x7f000001",
    "0x7F.1",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0177.0x0.0.1",
    "127.0.0.1.",
    "127.0.0.001",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "lоcalhost",
    "ip6-localhost",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::127.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:7f00:1::1]",
    "[2001:0:7f00:1::]",
    "[fe80::5efe:127.0.0.1]",
    "[2606:4700::5efe:7f00:1]",
    "[2606:4700::200:5efe:7f00:1]",
    // Metadata of clouds.
    "169.254.169.254",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[fd00:ec2::254]",
    "2852039166",
    "0xa9fea9fe",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "169.254.170.2",
    // Networks of companies and providers.
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.254",
    "100.64.0.1",
    "100.127.255.255",
    "[fc00::1]",
    "[fd12:3456:789a::1]",
    "[fe80::1]",
    "[fec0::1]",
    "169.254.0.1",
    // Neither unicast nor the internet.
    "224.0.0.1",
    "239.255.255.255",
    "255.255.255.255",
    "240.0.0.1",
    "198.18.0.1",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "[ff02::1]",
    "[ff0e::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[100::1]",
    "[4000::1]",
];

/// More URLs with this machine in them, and things that are no URL of HTTP.
const URLS: [&str; 20] = [
    "http://user:password@127.0.0.1:P/",
    "http://example.org@127.0.0.1:P/",
    "http://127.0.0.1:P#@example.org/",
    "http://127.0.0.1:P?@example.org/",
    "http://example.org:P@localhost:P/",
    "http:127.0.0.1:P/",
    "http:/127.0.0.1:P/",
    "http:///127.0.0.1:P/",
    "http:\\\\127.0.0.1:P\\",
    "http://127.0.0.1\\@example.org:P/",
    "//127.0.0.1:P/",
    "ftp://127.0.0.1:P/",
    "gopher://127.0.0.1:P/_x",
    "file:///etc/passwd",
    "unix:///var/run/docker.sock",
    "javascript:alert(1)",
    "data:text/plain,x",
    "dict://127.0.0.1:P/",
    " http://127.0.0.1:P/ ",
    "h\tttp://127.0.0.1:P/",
];

/// Listens on loopback of both families and counts connections.
async fn listeners() -> (u16, Arc<AtomicUsize>, JoinSet<()>) {
    let (count, mut tasks) = (Arc::<AtomicUsize>::default(), JoinSet::new());
    let v4 = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = v4.local_addr().unwrap().port();
    // A machine without IPv6 has nothing to reach there.
    let v6 = TcpListener::bind(("::1", port)).await.ok();
    for listener in [Some(v4), v6].into_iter().flatten() {
        let count = count.clone();
        tasks.spawn(async move {
            while listener.accept().await.is_ok() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    (port, count, tasks)
}

#[sqlx::test]
async fn none_of_a_hundred_urls_reaches_an_address_that_is_not_public(pool: PgPool) {
    let (port, reached, _tasks) = listeners().await;
    let urls = HOSTS.iter().map(|host| format!("http://{host}:P/"));
    let urls: Vec<_> =
        urls.chain(URLS.iter().map(|url| (*url).to_owned())).map(|url| url.replace('P', &port.to_string())).collect();
    assert_eq!(urls.len(), 100);
    let settings = WebhookSettings { http: true, ..WebhookSettings::default() };
    let replica = Replica::with(&pool, settings).await.run();
    let mut accepted = Vec::new();
    for url in &urls {
        let (status, said) = replica.ask("POST", "/v1/webhooks", Some(json!({"url": url}))).await;
        assert!([201, 400].contains(&status), "{url}: {said}");
        if status == 201 {
            accepted.push(url.as_str());
        }
    }
    // Only names, whose addresses are checked before each connection.
    let is_name = |url: &str| {
        ["localhost", "LOCALHOST", "ip6-localhost", "xn--", "lоcalhost"].iter().any(|name| url.contains(name))
    };
    assert!(accepted.iter().all(|url| is_name(url)), "{accepted:?}");

    // What an earlier release, or other settings, may have stored: the check of the URL is passed by.
    sqlx::query("DELETE FROM webhooks").execute(&pool).await.unwrap();
    let insert = "INSERT INTO webhooks (id, tenant, principal, url, format, own, states, labels, secrets, since)
        SELECT 'w' || n, 'default', 'x', url, 'cloudevents', false, '{}', '{}', convert_to('{\"current\":\"whsec_\"}', 'UTF8'), 0
        FROM unnest($1::text[]) WITH ORDINALITY AS u (url, n)";
    sqlx::query(insert).bind(&urls).execute(&pool).await.unwrap();
    replica.submit(json!({})).await;
    let tried = "SELECT count(*) FROM webhook_deliveries WHERE tries > 0";
    until("each is tried", async || sqlx::query_scalar::<_, i64>(tried).fetch_one(&pool).await.unwrap() == 100).await;
    assert_eq!(reached.load(Ordering::Relaxed), 0);
    let connected = "SELECT w.url || ': ' || error FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id
        WHERE error LIKE 'no %' OR error LIKE 'the connection%' OR error LIKE 'the receiver%'";
    let connected: Vec<String> = sqlx::query_scalar(connected).fetch_all(&pool).await.unwrap();
    assert!(connected.is_empty(), "a connection was tried: {connected:?}");
}

#[sqlx::test]
async fn the_listener_of_the_corpus_is_reached_if_that_is_permitted(pool: PgPool) {
    let (port, reached, _tasks) = listeners().await;
    let networks = vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
    let replica =
        Replica::with(&pool, WebhookSettings { networks, http: true, ..WebhookSettings::default() }).await.run();
    let hosts = BTreeMap::from([("literal", "127.0.0.1"), ("name", "localhost"), ("mapped", "[::ffff:127.0.0.1]")]);
    for host in hosts.values() {
        replica.create(json!({"url": format!("http://{host}:{port}/")})).await;
    }
    replica.submit(json!({})).await;
    until("each is reached", async || reached.load(Ordering::Relaxed) >= hosts.len()).await;
}
