//! The clients: they submit and kill jobs, and record the replies.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Sink,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use serde_json::json;
use sparkgate_check::{
    history::{self, Act, Line},
    play::{JOB, RUN, Recorder},
};
use sparkgate_testing::dice::Dice;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    files::Shelf,
    http::{Gateway, NoReply, Reply, answer, get, post},
    plan::Job,
    tenants::Tenant,
};

const LIMIT: Duration = Duration::from_secs(5);
/// How long a client retries.
const PATIENCE: Duration = Duration::from_secs(180);

/// What the clients know.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Submissions whose id a client received, and their job numbers.
    pub(crate) accepted: BTreeMap<String, u32>,
    /// Jobs whose request may have been carried out without a reply. They are not repeated.
    pub(crate) in_doubt: BTreeSet<u32>,
    /// How many of those a gateway itself reported as in doubt.
    pub(crate) said_in_doubt: usize,
    /// Submissions that a client asked to kill, whether the request arrived or not.
    pub(crate) kills: BTreeSet<String>,
    /// How often a request was answered with 503, or no process listened.
    pub(crate) put_off: usize,
    /// Replies that no client should get.
    pub(crate) odd: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) seed: u64,
    pub(crate) namespace: String,
    pub(crate) gateways: Vec<Gateway>,
    /// Whether jobs are those of [`Tenant`]s, each in its namespace.
    tenants: bool,
    /// Whether some jobs are sessions of Spark Connect.
    pub(crate) sessions: bool,
    /// Whether some jobs get more memory after it ran out, or are restarted.
    pub(crate) restarts: bool,
    /// The jobs to submit, of those that the seed plans.
    pub(crate) wanted: fn(&Job) -> bool,
    /// Uploaded files, for jobs.
    pub(crate) shelf: Arc<Shelf>,
    /// Their calls and replies, to be compared with the promises.
    pub(crate) recorder: Recorder<Sink>,
    book: Arc<Mutex<Book>>,
    /// The number of the next job.
    next: Arc<AtomicU32>,
}

impl Clients {
    pub(crate) fn new(seed: u64, namespace: String, gateways: Vec<Gateway>, tenants: bool) -> Self {
        let (wanted, shelf): (fn(&Job) -> bool, _) = (|_| true, Arc::default());
        let (sessions, restarts, book, next) = (false, false, Arc::default(), Arc::default());
        let recorder = Recorder::new(std::io::sink());
        Self { seed, namespace, gateways, tenants, sessions, restarts, wanted, shelf, recorder, book, next }
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    /// Submits jobs, evenly over `time`, until `count` are accepted, and kills those that are planned to be killed.
    pub(crate) async fn submit_all(&self, count: u32, time: Duration) {
        let began = Instant::now();
        let mut under_way = JoinSet::new();
        for nth in 0..count {
            sleep_until(began + time.mul_f64(f64::from(nth) / f64::from(count))).await;
            let client = self.clone();
            under_way.spawn(async move { client.play().await });
            while under_way.try_join_next().is_some() {}
        }
        while let Some(ended) = under_way.join_next().await {
            ended.unwrap();
        }
    }

    async fn play(&self) {
        let (id, job) = self.submit().await;
        if let Some(after) = job.kill_after {
            sleep(after).await;
            self.kill(&id, job.number).await;
        }
    }

    /// Submits the next job that is planned like this.
    #[cfg(test)]
    pub(crate) async fn submit_like(&self, like: impl Fn(&Job) -> bool) -> String {
        while !like(&Job::planned(self.seed, self.next.load(SeqCst))) {
            self.next.fetch_add(1, SeqCst);
        }
        self.submit().await.0
    }

    /// Submits a job. A job whose request is in doubt is never repeated: another one replaces it.
    pub(crate) async fn submit(&self) -> (String, Job) {
        loop {
            let number = self.next.fetch_add(1, SeqCst);
            if !(self.wanted)(&Job::planned(self.seed, number)) {
                continue;
            }
            self.recorder.add(Line::Job(history::Job { job: number, ends: None })).unwrap();
            if let Some(id) = self.submit_once(number).await {
                self.book().accepted.insert(id.clone(), number);
                self.read_back(&id, number).await;
                return (id, Job::planned(self.seed, number));
            }
            self.book().in_doubt.insert(number);
        }
    }

    /// Reads an accepted submission on any gateway: each of them has the row.
    async fn read_back(&self, id: &str, number: u32) {
        let gateway = Dice::new(self.seed ^ u64::from(number), "read back").pick(&self.gateways).unwrap();
        let mut reply = None;
        let read = async {
            reply = get(gateway, &format!("/v1/submissions/{id}")).await;
            answer(reply.as_ref().ok_or(&NoReply::InDoubt))
        };
        self.recorder.call(Act::Read { id: id.to_owned() }, read).await.unwrap();
        if let Some(reply) = reply
            && !matches!(reply.status, 200 | 500 | 503)
        {
            self.book().odd.push(format!("{id} was accepted, and then: {reply:?}"));
        }
    }

    async fn submit_once(&self, number: u32) -> Option<String> {
        let namespace =
            if self.tenants { Tenant::of_job(number).namespace(&self.namespace) } else { self.namespace.clone() };
        if self.sessions && Job::planned(self.seed, number).session {
            return self.open_session(number, &namespace).await;
        }
        let mut dice = Dice::new(self.seed ^ u64::from(number), "file");
        let file = if dice.one_in(3) { self.shelf.use_one(&namespace, &mut dice) } else { None };
        let Job { retries, growth, restarts, .. } = Job::planned(self.seed, number);
        let mut properties = json!({"spark.kubernetes.namespace": namespace,
            "spark.kubernetes.container.image": "spark", "spark.app.name": "crash",
            "spark.sparkgate.maxRetries.infrastructure": retries.to_string()});
        if self.restarts && growth > 0 {
            properties["spark.sparkgate.memoryGrowth.retries"] = growth.to_string().into();
        }
        if self.restarts && restarts {
            properties["spark.sparkgate.restart"] = "onFailure".into();
        }
        self.label(&mut properties, number);
        if let Some(digest) = file {
            properties["spark.files"] = format!("sparkgate-file:/{digest}/data.bin").into();
        }
        let body = json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0",
            "appResource": "local:///opt/app.jar", "mainClass": "org.example.Main",
            "appArgs": [Job::argument(number)], "sparkProperties": properties, "environmentVariables": {}});
        let act = Act::Create { job: number };
        let reply = self.ask(number, "/v1/submissions/create", &body.to_string(), act).await?;
        let id = reply.body["submissionId"].as_str().map(str::to_owned).filter(|_| reply.status == 200);
        if id.is_none() {
            self.book().odd.push(format!("create of job {number}: {reply:?}"));
        }
        id
    }

    /// Adds the labels by which the submissions of a run and their jobs are found at the end.
    fn label(&self, properties: &mut serde_json::Value, number: u32) {
        properties[format!("spark.sparkgate.label.{RUN}")] = self.namespace.clone().into();
        properties[format!("spark.sparkgate.label.{JOB}")] = number.to_string().into();
    }

    /// Opens a session, which no client uses then.
    async fn open_session(&self, number: u32, namespace: &str) -> Option<String> {
        let mut properties = json!({"spark.kubernetes.namespace": namespace, "spark.kubernetes.container.image": "spark",
            "spark.executor.instances": "2", "spark.kubernetes.driverEnv.CRASH_JOB": Job::argument(number)});
        self.label(&mut properties, number);
        let body = json!({"name": Job::argument(number), "sparkProperties": properties, "idleTimeoutSeconds": 60});
        let reply = self.ask(number, "/v1/sessions", &body.to_string(), Act::Create { job: number }).await?;
        let id = reply.body["id"].as_str().map(str::to_owned).filter(|_| reply.status == 201);
        if id.is_none() {
            self.book().odd.push(format!("session of job {number}: {reply:?}"));
        }
        id
    }

    /// Requests a kill of the submission until a gateway answers.
    pub(crate) async fn kill(&self, id: &str, number: u32) {
        self.book().kills.insert(id.to_owned());
        match self.ask(number, &format!("/v1/submissions/kill/{id}"), "", Act::Kill { id: id.to_owned() }).await {
            Some(Reply { status: 200, .. }) => {}
            other => self.book().odd.push(format!("kill of {id}: {other:?}")),
        }
    }

    /// Posts to any of the gateways until there is a reply other than "try again". Returns `None` if the result is in
    /// doubt, which is never the case for a kill: it may be repeated.
    async fn ask(&self, number: u32, path: &str, body: &str, act: Act) -> Option<Reply> {
        let repeated = matches!(act, Act::Kill { .. });
        let mut dice = Dice::new(self.seed ^ u64::from(number), path);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let gateway = dice.pick(&self.gateways).unwrap();
            let mut reply = Err(NoReply::NotSent);
            let call = async {
                reply = post(gateway, path, body, LIMIT).await;
                answer(reply.as_ref())
            };
            self.recorder.call(act.clone(), call).await.unwrap();
            match reply {
                Err(NoReply::InDoubt) if !repeated => return None,
                Ok(Reply { status: 503, retry_after: false, .. }) if !repeated => {
                    self.book().said_in_doubt += 1;
                    return None;
                }
                Ok(Reply { status: 503, .. }) => sleep(dice.millis(700, 1300)).await,
                Err(NoReply::NotSent | NoReply::InDoubt) => sleep(dice.millis(20, 300)).await,
                Ok(reply) => return Some(reply),
            }
            self.book().put_off += 1;
        }
        self.book().odd.push(format!("{path} of job {number}: no gateway accepted it within {PATIENCE:?}"));
        None
    }
}
