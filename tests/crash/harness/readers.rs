//! Those who read while everything fails: subscribers of the stream of events and of its pages, and a webhook. At the end each must
//! have exactly what the rows say, whatever replicas they were connected to.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Sink,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use serde_json::{Value, json};
use sparkgate_check::{
    history::{Event, Follower, Line},
    play::Recorder,
};
use sparkgate_testing::dice::Dice;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    history::History,
    http::{Gateway, NoReply, get, post as send},
    tenants::Tenant,
    world::World,
};

/// A stream that says nothing for this long is left: its replica may be stopped.
const SILENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(200);

/// An event as a reader sees it: submission, attempt, state.
type Change = (String, i64, String);

/// What one reader has read, by number, and what it found wrong.
#[derive(Debug)]
struct Read {
    name: &'static str,
    /// Records the events for the history that is compared with the promises.
    recorder: Recorder<Sink>,
    /// The last event before the run.
    from: i64,
    events: BTreeMap<i64, Change>,
    wrong: Vec<String>,
}

impl Read {
    fn last(&self) -> i64 {
        self.events.last_key_value().map_or(self.from, |(number, _)| *number)
    }

    /// Takes an event of a stream, which comes once and after all before it.
    fn follow(&mut self, event: &Value) {
        let (number, change) = change(event);
        if number <= self.last() {
            self.wrong.push(format!("event {number}, {change:?}, came after {}", self.last()));
        }
        self.events.insert(number, change);
        let (follower, at) = (self.name.to_owned(), self.recorder.now());
        let change = serde_json::from_value(event.clone()).unwrap();
        self.recorder.add(Line::Event(Event { follower, at, change })).unwrap();
    }
}

/// What a webhook received: for each submission, the numbers in the order of their first arrival.
#[derive(Debug, Default)]
struct Received {
    all: BTreeMap<i64, Change>,
    order: BTreeMap<String, Vec<i64>>,
    messages: usize,
}

pub(crate) struct Readers {
    streamed: Arc<Mutex<Read>>,
    paged: Arc<Mutex<Read>>,
    received: Arc<Mutex<Received>>,
    gateways: Vec<Gateway>,
    _tasks: JoinSet<()>,
}

impl Readers {
    /// The options of a gateway that may send webhooks to this machine.
    pub(crate) const OPTIONS: &[&str] =
        &["--webhook-networks", "127.0.0.0/8", "--webhook-http", "true", "--webhook-ports", "1-65535"];

    /// Begins to read, before anything is submitted.
    pub(crate) async fn begin(world: &World) -> Self {
        let gateways = world.clients.gateways.clone();
        let read = |name: &'static str| {
            let (from, recorder) = (world.history.event, world.clients.recorder.clone());
            recorder.add(Line::Follower(Follower { follower: name.to_owned(), after: from })).unwrap();
            Arc::new(Mutex::new(Read { name, recorder, from, events: BTreeMap::new(), wrong: Vec::new() }))
        };
        let mut readers = Self {
            streamed: read("stream"),
            paged: read("pages"),
            received: Arc::default(),
            gateways: gateways.clone(),
            _tasks: JoinSet::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let router = Router::new().route("/", post(receive)).with_state(readers.received.clone());
        readers._tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        match &world.neighbours {
            None => readers.subscribe(&url, None).await,
            Some(neighbours) => {
                for tenant in Tenant::ALL {
                    readers.subscribe(&url, Some(tenant)).await;
                }
                for url in &neighbours.unheard {
                    readers.subscribe(url, Some(Tenant::Unheard)).await;
                }
            }
        }
        // A neighbour whose receiver takes no message.
        readers.subscribe("http://127.0.0.1:1/", world.neighbours.as_ref().map(|_| Tenant::Unheard)).await;
        let (streamed, all) = (readers.streamed.clone(), gateways.clone());
        let dice = Dice::new(world.seed, "stream");
        readers._tasks.spawn(async move { stream(&all, &streamed, dice).await });
        let (paged, dice) = (readers.paged.clone(), Dice::new(world.seed, "pages"));
        readers._tasks.spawn(async move { pages(&gateways, &paged, dice).await });
        readers
    }

    async fn subscribe(&self, url: &str, tenant: Option<Tenant>) {
        let mut body = json!({"url": url});
        if let Some(tenant) = tenant {
            body["tenant"] = tenant.name().into();
        }
        let body = body.to_string();
        loop {
            match send(&self.gateways[0], "/v1/webhooks", &body, Duration::from_secs(10)).await {
                Ok(reply) if reply.status == 201 => return,
                Ok(reply) if reply.status != 503 => panic!("creating a webhook: {reply:?}"),
                Ok(_) | Err(NoReply::NotSent | NoReply::InDoubt) => sleep(PAUSE).await,
            }
        }
    }

    /// Compares what was read with the rows, once everything has ended. Readers get `patience` to reach the end.
    pub(crate) async fn judge(&self, world: &World, patience: Duration) -> Vec<String> {
        let deadline = Instant::now() + patience;
        let rows = loop {
            let rows = self.rows(world).await;
            let is_late = Instant::now() > deadline;
            let numbers: Option<BTreeSet<i64>> = rows.iter().map(|(number, _)| *number).collect();
            if let Some(numbers) = numbers
                && (is_late || self.have_all(&numbers))
            {
                break rows.into_iter().filter_map(|(number, change)| Some((number?, change))).collect();
            }
            if is_late {
                let without = rows.iter().filter(|(number, _)| number.is_none()).count();
                return vec![format!("{without} events have no number")];
            }
            sleep(PAUSE).await;
        };
        let mut wrong = compare("the stream", &self.streamed.lock().unwrap(), &rows);
        wrong.extend(compare("the pages", &self.paged.lock().unwrap(), &rows));
        wrong.extend(self.of_webhook(&rows));
        wrong.extend(self.usage().await);
        wrong
    }

    async fn rows(&self, world: &World) -> Vec<(Option<i64>, Change)> {
        let events = "SELECT sequence, submission_id, attempt::bigint, state FROM submission_events
            WHERE sequence IS NULL OR sequence > $1 ORDER BY sequence";
        let rows: Vec<(Option<i64>, String, i64, String)> =
            sqlx::query_as(events).bind(world.history.event).fetch_all(&world.pool).await.unwrap();
        rows.into_iter().map(|(number, id, attempt, state)| (number, (id, attempt, state))).collect()
    }

    fn have_all(&self, numbers: &BTreeSet<i64>) -> bool {
        let last = numbers.last().copied().unwrap_or_default();
        self.streamed.lock().unwrap().last() >= last
            && self.paged.lock().unwrap().last() >= last
            && numbers.iter().all(|number| self.received.lock().unwrap().all.contains_key(number))
    }

    /// Each change arrived at least once, and those of a submission in their order.
    fn of_webhook(&self, rows: &BTreeMap<i64, Change>) -> Vec<String> {
        let received = self.received.lock().unwrap();
        let missing = rows.iter().filter(|(number, change)| received.all.get(*number) != Some(*change));
        let mut wrong: Vec<_> =
            missing.map(|(number, change)| format!("the webhook didn't get {number}, {change:?}")).collect();
        let disordered = received.order.iter().filter(|(_, numbers)| !numbers.is_sorted());
        wrong.extend(disordered.map(|(id, numbers)| format!("{id}: the webhook got its changes as {numbers:?}")));
        wrong
    }

    /// The report of all usage is the sum of what the submissions say of theirs.
    async fn usage(&self) -> Vec<String> {
        let cores = |usage: &Value| usage["total"]["coreSeconds"].as_f64().unwrap_or_default();
        let (mut all, mut cursor) = (0.0, String::new());
        'pages: loop {
            let page = get(&self.gateways[0], &format!("/v1/submissions?limit=200{cursor}")).await;
            let Some(page) = page.filter(|page| page.status == 200) else {
                return vec!["submissions can't be listed".to_owned()];
            };
            for item in page.body["items"].as_array().into_iter().flatten() {
                let id = item["id"].as_str().unwrap_or_default();
                // They used nothing that was counted, and the newest come first.
                if History::has(id) {
                    break 'pages;
                }
                if let Some(one) = get(&self.gateways[0], &format!("/v1/submissions/{id}")).await {
                    all += cores(&one.body["usage"]);
                }
            }
            match page.body["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let Some(report) = get(&self.gateways[0], "/v1/usage").await else { return vec!["no usage report".to_owned()] };
        let reported = cores(&report.body["total"]);
        // Each document is rounded.
        let is_near = (reported - all).abs() <= 1.0 + all * 0.001;
        if is_near { Vec::new() } else { vec![format!("{all} core-seconds were used, and {reported} are reported")] }
    }

    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let (streamed, paged) = (self.streamed.lock().unwrap(), self.paged.lock().unwrap());
        (streamed.events.len(), paged.events.len(), self.received.lock().unwrap().messages)
    }
}

fn compare(who: &str, read: &Read, rows: &BTreeMap<i64, Change>) -> Vec<String> {
    let mut wrong: Vec<_> = read.wrong.iter().map(|wrong| format!("{who}: {wrong}")).collect();
    for (number, change) in rows {
        match read.events.get(number) {
            None => wrong.push(format!("{who} missed event {number}, {change:?}")),
            Some(seen) if seen != change => wrong.push(format!("{who}: event {number} is {change:?}, not {seen:?}")),
            Some(_) => {}
        }
    }
    let unknown = read.events.keys().filter(|number| !rows.contains_key(number));
    wrong.extend(unknown.map(|number| format!("{who}: there is no event {number}")));
    wrong
}

fn change(event: &Value) -> (i64, Change) {
    let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let number = |field: &str| event[field].as_i64().unwrap_or_default();
    (number("sequence"), (text("submissionId"), number("attempt"), text("state")))
}

async fn receive(State(received): State<Arc<Mutex<Received>>>, Json(message): Json<Value>) -> StatusCode {
    let (number, change) = change(&message["data"]);
    let mut received = received.lock().unwrap();
    received.messages += 1;
    if !received.all.contains_key(&number) {
        received.order.entry(change.0.clone()).or_default().push(number);
        received.all.insert(number, change);
    }
    StatusCode::NO_CONTENT
}

/// Follows the stream on one replica after the other, each time from the last event on.
async fn stream(gateways: &[Gateway], read: &Mutex<Read>, mut dice: Dice) {
    loop {
        let gateway = dice.pick(gateways).unwrap();
        let last = read.lock().unwrap().last();
        // The end of a connection is the end of a stream, however it came.
        let _ = stream_of(gateway, last, read).await;
        sleep(dice.millis(20, 400)).await;
    }
}

async fn stream_of(gateway: &Gateway, last: i64, read: &Mutex<Read>) -> std::io::Result<()> {
    let mut connection = TcpStream::connect(gateway.address).await?;
    // Version 1.0 has no chunks.
    let head = gateway.head("GET", "/v1/events?after=0", "HTTP/1.0");
    let request = format!("{head}Accept: text/event-stream\r\nLast-Event-ID: {last}\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut lines = BufReader::new(connection).lines();
    let status = timeout(SILENCE, lines.next_line()).await??.unwrap_or_default();
    if !status.contains(" 200 ") {
        if !status.is_empty() && !status.contains(" 503 ") && !status.contains(" 500 ") {
            read.lock().unwrap().wrong.push(format!("after {last}: {status}"));
        }
        return Ok(());
    }
    while let Some(line) = timeout(SILENCE, lines.next_line()).await?? {
        if let Some(data) = line.strip_prefix("data: ") {
            let Ok(event) = serde_json::from_str(data) else { return Ok(()) };
            read.lock().unwrap().follow(&event);
        }
    }
    Ok(())
}

/// Reads page after page, each on any replica.
async fn pages(gateways: &[Gateway], read: &Mutex<Read>, mut dice: Dice) {
    loop {
        let gateway = dice.pick(gateways).unwrap();
        let last = read.lock().unwrap().last();
        let page = get(gateway, &format!("/v1/events?after={last}&limit=50")).await;
        match page {
            Some(page) if page.status == 200 => {
                let mut read = read.lock().unwrap();
                page.body["items"].as_array().into_iter().flatten().for_each(|event| read.follow(event));
            }
            Some(page) if page.status != 503 && page.status != 500 => {
                read.lock().unwrap().wrong.push(format!("after {last}: {page:?}"));
            }
            Some(_) | None => {}
        }
        sleep(dice.millis(100, 600)).await;
    }
}
