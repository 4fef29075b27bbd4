//! Clients of both APIs, which record each request with its reply.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sparkgate_testing::dice::Dice;
use tokio::task::JoinSet;

use super::{
    http::{Got, HangUp, Request, send},
    table::{Asked, Says, read},
};

/// One request and its reply.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) asked: Asked,
    /// The first argument of the application, which identifies this request.
    pub(crate) marker: String,
    pub(crate) key: Option<String>,
    /// The submission that the request names.
    pub(crate) id: Option<String>,
    pub(crate) begun: DateTime<Utc>,
    pub(crate) ended: DateTime<Utc>,
    pub(crate) got: Got,
}

#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) seed: u64,
    pub(crate) gateways: Vec<SocketAddr>,
    pub(crate) entries: Arc<Mutex<Vec<Entry>>>,
    /// Ids that clients received.
    ids: Arc<Mutex<Vec<String>>>,
    next: Arc<AtomicUsize>,
    /// Successful replies so far.
    pub(crate) successes: Arc<AtomicUsize>,
}

impl Clients {
    pub(crate) fn new(seed: u64, gateways: Vec<SocketAddr>) -> Self {
        Self {
            seed,
            gateways,
            entries: Arc::default(),
            ids: Arc::default(),
            next: Arc::default(),
            successes: Arc::default(),
        }
    }

    /// Sends `requests` requests, `at_once` of them concurrently.
    pub(crate) async fn send_all(&self, requests: usize, at_once: usize, talkative: bool) {
        let mut clients = JoinSet::new();
        for _ in 0..at_once {
            let client = self.clone();
            clients.spawn(async move {
                loop {
                    let number = client.next.fetch_add(1, SeqCst);
                    if number >= requests {
                        return;
                    }
                    if talkative && number.is_multiple_of(5000) {
                        println!("{} request {number}", Utc::now().format("%H:%M:%S"));
                    }
                    client.one(number).await;
                }
            });
        }
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
    }

    async fn one(&self, number: usize) {
        let mut dice = Dice::new(self.seed ^ (number as u64) << 20, "request");
        let marker = format!("m{number}");
        let kind = dice.weighed(&[
            (24, 0),
            (24, 1),
            (12, 2),
            (6, 3),
            (7, 4),
            (8, 5),
            (8, 6),
            (10, 7),
            (10, 8),
            (1, 9),
            (1, 10),
            (12, 11),
        ]);
        let known = {
            let ids = self.ids.lock().unwrap();
            let newest = ids.len().saturating_sub(200);
            dice.pick(&ids[newest..]).cloned()
        };
        let unknown = dice.one_in(30);
        let id = known.filter(|_| !unknown).unwrap_or_else(|| format!("driver-20000101000000-{number}"));
        // Requests that are sent at about the same time use the same key; one in seven of them has another body.
        let key = format!("k{}", (number / 40) * 4 + usize::try_from(dice.below(4)).unwrap());
        let what = if dice.one_in(7) { "other" } else { "same" };
        let (asked, key, id, request) = match kind {
            0 => (Asked::SparkCreate, None, None, spark(&marker, "job", &json!({}))),
            1 => (Asked::Post, None, None, resource(&marker, &json!({"name": "job"}), None)),
            2 => {
                let marker = format!("{key}-{what}-{:?}", Asked::Post);
                (Asked::Post, Some(key.clone()), None, resource(&marker, &json!({"name": "keyed"}), Some(key)))
            }
            3 => {
                let marker = format!("{key}-{what}-{:?}", Asked::SparkCreate);
                let properties = json!({"spark.sparkgate.idempotencyKey": key});
                (Asked::SparkCreate, Some(key), None, spark(&marker, "keyed", &properties))
            }
            4 => {
                let unique = json!({"name": format!("unique-{}", dice.below(12)), "uniqueName": true});
                (Asked::Post, None, None, resource(&marker, &unique, None))
            }
            5 => (Asked::SparkKill, None, Some(id.clone()), bare("POST", format!("/v1/submissions/kill/{id}"))),
            6 => (Asked::Delete, None, Some(id.clone()), bare("DELETE", format!("/v1/submissions/{id}"))),
            7 => (Asked::Status, None, Some(id.clone()), bare("GET", format!("/v1/submissions/status/{id}"))),
            8 => {
                let part =
                    *dice.pick(&["", "", "", "/events", "/attempts", "/executors", "/manifest", "/outcome"]).unwrap();
                (Asked::Read, None, Some(id.clone()), bare("GET", format!("/v1/submissions/{id}{part}")))
            }
            // A session's application has no arguments: its name identifies the request.
            11 => {
                let session = json!({"name": marker, "sparkProperties": {"spark.kubernetes.container.image": "spark"}});
                let request = Request { body: session.to_string(), ..bare("POST", "/v1/sessions".to_owned()) };
                (Asked::Session, None, None, request)
            }
            9 if dice.one_in(4) => (Asked::KillAll, None, None, bare("POST", "/v1/submissions/killall".to_owned())),
            _ => (Asked::Clear, None, None, bare("POST", "/v1/submissions/clear".to_owned())),
        };
        let marker = if let Some(key) = &key { format!("{key}-{what}-{asked:?}") } else { marker };
        let hang_up = match dice.below(40) {
            0 => HangUp::Within(dice.below(100)),
            1 => HangUp::After(dice.millis(0, 60)),
            _ => HangUp::Never,
        };
        let gateway = *dice.pick(&self.gateways).unwrap();
        let begun = Utc::now();
        let got = send(gateway, &request, hang_up).await;
        if let (Some((_, _, Says::Kept)), Got::Reply(reply)) = (read(asked, &got), &got)
            && let Some(id) = told(&reply.body)
        {
            self.ids.lock().unwrap().push(id.to_owned());
        }
        if matches!(&got, Got::Reply(reply) if reply.status < 300) {
            self.successes.fetch_add(1, SeqCst);
        }
        if matches!(got, Got::NotSent) && matches!(hang_up, HangUp::Never) {
            // The gateway is just restarting.
            tokio::time::sleep(dice.millis(20, 150)).await;
        }
        let entry = Entry { asked, marker, key, id, begun, ended: Utc::now(), got };
        self.entries.lock().unwrap().push(entry);
    }
}

/// Returns the id that a reply names.
pub(crate) fn told(body: &Value) -> Option<&str> {
    body["submissionId"].as_str().or_else(|| body["id"].as_str())
}

pub(super) fn bare(method: &'static str, path: String) -> Request {
    Request { method, path, headers: Vec::new(), body: String::new() }
}

fn spark(marker: &str, name: &str, more: &Value) -> Request {
    let mut properties = json!({"spark.app.name": name, "spark.kubernetes.container.image": "spark"});
    for (key, value) in more.as_object().unwrap() {
        properties[key] = value.clone();
    }
    let body = json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appArgs": [marker],
        "appResource": "local:///opt/app.jar", "mainClass": "Main", "environmentVariables": {},
        "sparkProperties": properties});
    Request { body: body.to_string(), ..bare("POST", "/v1/submissions/create".to_owned()) }
}

fn resource(marker: &str, fields: &Value, key: Option<String>) -> Request {
    let mut body = json!({"appResource": "local:///opt/app.jar", "mainClass": "Main", "appArgs": [marker],
        "sparkProperties": {"spark.kubernetes.container.image": "spark"}});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let headers = key.map(|key| ("Idempotency-Key", key)).into_iter().collect();
    Request { body: body.to_string(), headers, ..bare("POST", "/v1/submissions".to_owned()) }
}
