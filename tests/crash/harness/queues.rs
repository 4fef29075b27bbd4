//! Queues of the tenants, whose caps and weights change while the storm lasts. What is admitted in a queue never exceeds its cap, unless the
//! cap was lowered below it; then nothing more is admitted.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use sparkgate_testing::dice::Dice;
use sqlx::PgPool;
use tokio::time::{Instant, sleep, timeout};

use super::{
    tenants::{Tenant, access_file},
    truth::Truth,
};

const NAMES: [&str; 3] = ["struck", "spared", "bad"];
/// The pods and cores of a submission: its driver and two executors.
const PODS: u64 = 3;
/// The most submissions that the caps of a queue permit, and the least.
const MOST: [u64; 3] = [40, 20, 20];
const LEAST: [u64; 3] = [8, 3, 3];
/// How long a replica may go by an older file: it looks every five seconds, and may be stopped for eight.
const OLDER: Duration = Duration::from_secs(20);
const PERIOD: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(2);

/// Returns the queue of a tenant.
pub(crate) fn queue_of(tenant: Tenant) -> &'static str {
    match tenant {
        Tenant::Struck => NAMES[0],
        Tenant::Spared => NAMES[1],
        Tenant::Unheard | Tenant::Full | Tenant::Denied => NAMES[2],
    }
}

/// The caps that the access file has had, and what was admitted meanwhile.
pub(crate) struct Queues {
    world: String,
    /// In submissions.
    caps: Mutex<Vec<(Instant, [u64; 3])>>,
    seen: Mutex<Seen>,
}

/// What was sampled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) samples: usize,
    pub(crate) files: usize,
    /// The most that was admitted in a queue, and that ran as pods.
    pub(crate) admitted: u64,
    pub(crate) running: u64,
    /// Samples in which a queue was full.
    pub(crate) full: usize,
    before: [u64; 3],
    pub(crate) violations: Vec<String>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    attempt: i32,
    queue: String,
    is_admitted: bool,
}

impl Queues {
    /// Writes the access file of a world with queues.
    pub(crate) fn begin(world: &str) -> Arc<Self> {
        let queues = Self { world: world.to_owned(), caps: Mutex::default(), seen: Mutex::default() };
        queues.write(MOST, [3, 1, 1]);
        Arc::new(queues)
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn write(&self, caps: [u64; 3], weights: [u64; 3]) {
        let [struck, spared, bad] = caps;
        let resources =
            [format!("submissions: {struck}"), format!("cores: {}", spared * PODS), format!("pods: {}", bad * PODS)];
        let each = NAMES.iter().zip(resources).zip(weights);
        let lines = each.map(|((name, caps), weight)| format!("  {name}: {{weight: {weight}, caps: {{{caps}}}}}\n"));
        let text = format!("queues:\n{}", lines.collect::<String>());
        // The new caps may hold as soon as the file is there, and the old ones until it is.
        self.caps.lock().unwrap().push((Instant::now(), caps));
        access_file(&self.world, Some(&text));
        self.seen().files += 1;
    }

    /// Changes caps and weights, as long as the storm lasts.
    pub(crate) async fn storm(&self, mut dice: Dice, time: Duration) {
        let ends = Instant::now() + time;
        while Instant::now() < ends {
            let pause = time.mul_f64(0.15).clamp(Duration::from_secs(2), Duration::from_secs(25));
            sleep(pause).await;
            let caps = [0, 1, 2].map(|at| LEAST[at] + dice.below(MOST[at] - LEAST[at]));
            let weights = [0, 1, 2].map(|_| 1 + dice.below(5));
            self.write(caps, weights);
        }
        self.write(MOST, [1, 1, 1]);
    }

    /// Returns the largest caps by which a replica may decide now.
    fn allowed(&self) -> [u64; 3] {
        let caps = self.caps.lock().unwrap();
        let since = Instant::now() - OLDER;
        let first = caps.iter().rposition(|(at, _)| *at <= since).unwrap_or_default();
        [0, 1, 2].map(|queue| caps[first..].iter().map(|(_, caps)| caps[queue]).max().unwrap_or_default())
    }

    /// Compares what is admitted with the caps, from time to time. Runs forever.
    pub(crate) async fn watch(self: Arc<Self>, pool: PgPool, truth: Arc<Truth>) {
        loop {
            sleep(PERIOD).await;
            let allowed = self.allowed();
            let running: BTreeMap<(String, i32), String> = {
                let pods = truth.all();
                let runs = pods.iter().filter(|(_, pod)| pod.began.is_some() && pod.ended.is_none() && !pod.gone);
                runs.map(|(uid, pod)| ((pod.submission.clone(), pod.attempt), uid.clone())).collect()
            };
            let rows = sqlx::query_as(
                "SELECT id, attempt, queue, queue_rank IS NULL AND (admitted_at IS NOT NULL OR pod_uid IS NOT NULL) AS is_admitted
                 FROM submissions WHERE queue IS NOT NULL AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')",
            );
            // The server may be down.
            if let Ok(Ok(rows)) = timeout(LIMIT, rows.fetch_all(&pool)).await {
                self.sample(allowed, &running, &rows);
            }
        }
    }

    fn sample(&self, allowed: [u64; 3], running: &BTreeMap<(String, i32), String>, rows: &[Row]) {
        let mut seen = self.seen();
        seen.samples += 1;
        for (at, queue) in NAMES.iter().enumerate() {
            let of_queue = || rows.iter().filter(|row| row.queue == *queue);
            let runs = |row: &&Row| running.contains_key(&(row.id.clone(), row.attempt));
            let admitted = of_queue().filter(|row| row.is_admitted).count() as u64;
            let pods = of_queue().filter(runs).count() as u64;
            for row in of_queue().filter(|row| !row.is_admitted).filter(runs) {
                seen.violations.push(format!("{}: attempt {} runs without its admission", row.id, row.attempt));
            }
            if admitted.max(pods) > allowed[at] && admitted > seen.before[at] {
                let cap = allowed[at];
                seen.violations.push(format!("queue {queue}: {admitted} are admitted, {pods} run, of at most {cap}"));
            }
            seen.full += usize::from(admitted >= allowed[at]);
            seen.before[at] = admitted;
            (seen.admitted, seen.running) = (seen.admitted.max(admitted), seen.running.max(pods));
        }
    }
}
