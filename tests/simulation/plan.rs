//! The parameters of a history. Each seed turns some faults on and others off: all faults at once would hide the effect
//! of each.

use crate::{
    flaw::Flaw,
    names::MOST_ATTEMPTS,
    queues::LARGEST,
    rng::Rng,
    store::{InQueue, Limits, QUEUES, Restart, Time},
};

/// The most tenants of a history.
pub(crate) const TENANTS: u64 = 2;

/// The reason for which the API server refuses a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Nothing,
    /// The gateway itself can't build the objects.
    Build,
    Before,
    Pod,
    Beside,
}

/// One planned submission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) tenant: usize,
    pub(crate) before: usize,
    pub(crate) beside: usize,
    pub(crate) refused: Refused,
    /// One for each attempt.
    pub(crate) exit_codes: [i32; MOST_ATTEMPTS],
    pub(crate) limits: Limits,
    /// Its driver ends only when it is killed, by its time limit or its idleness at the latest.
    pub(crate) endless: bool,
    /// It is a session of Spark Connect, which is ended after so long without a use.
    pub(crate) idle: Option<Time>,
    pub(crate) in_queue: Option<InQueue>,
}

/// The probability of each event, in thousandths.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) replicas: usize,
    pub(crate) wanted: Vec<Wanted>,
    /// The tenant in whose namespaces only the gateway and the cluster act: whatever others do elsewhere, its rows say what
    /// really happened, without exception.
    pub(crate) guarded: Option<usize>,
    /// Whether driver pods carry our finalizer.
    pub(crate) finalizer: bool,
    /// The longest time that the clock advances in a step.
    pub(crate) tick: Time,
    pub(crate) steps: u64,
    /// The number of observed changes that are processed concurrently, in any order.
    pub(crate) at_once: usize,
    pub(crate) crash: u64,
    pub(crate) pause: u64,
    pub(crate) stop: u64,
    pub(crate) lost: u64,
    pub(crate) slow: u64,
    pub(crate) away: u64,
    pub(crate) clock: u64,
    pub(crate) cut: u64,
    pub(crate) repeat: u64,
    pub(crate) compact: u64,
    pub(crate) kill: u64,
    /// Uses of sessions by clients.
    pub(crate) uses: u64,
    pub(crate) retention: u64,
    pub(crate) outsider: u64,
    pub(crate) strip: u64,
    pub(crate) foreign: u64,
    pub(crate) labels: u64,
    pub(crate) identity: u64,
    pub(crate) replace: u64,
    pub(crate) forge: u64,
    pub(crate) kill_all: u64,
    pub(crate) denied: u64,
    pub(crate) node: u64,
    pub(crate) restarts: u64,
    /// How often there is no node for a pod.
    pub(crate) full: u64,
    /// Changes of the access file, if there are queues.
    pub(crate) rules: u64,
    pub(crate) hold: u64,
    /// Whether there are queues.
    pub(crate) queues: bool,
    /// Whether something stays bad when the other faults have ended.
    pub(crate) lasts: bool,
    /// What is wrong with the gateway itself.
    pub(crate) flaw: Option<Flaw>,
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let tenants = rng.pick(&[1, TENANTS]);
        // A crowd has more submissions than a replica has slots.
        let queues = rng.chance(500);
        let crowd = if queues { 300 } else { 100 };
        let count = if rng.chance(crowd) { 6 } else { 1 + rng.below(3) };
        let wanted = (0..count).map(|_| {
            let idle = rng.chance(200).then(|| 300 + rng.below(3_000));
            // A session has no retries.
            let mut retries = |most: &[u32]| if idle.is_some() { 0 } else { rng.pick(most) };
            let (infrastructure, application) = (retries(&[0, 0, 1, 2]), retries(&[0, 0, 0, 1]));
            let (capacity, quota) = (retries(&[0, 1, 2]), retries(&[0, 1, 2]));
            let restart = match idle {
                Some(_) => Restart::Never,
                None => {
                    rng.pick(&[Restart::Never, Restart::Never, Restart::Never, Restart::OnFailure, Restart::Always])
                }
            };
            let memory = if idle.is_some() { None } else { rng.pick(&[None, None, Some(1), Some(2)]) };
            let limits = Limits {
                start: rng.chance(300).then(|| 1_000 + rng.below(9_000)),
                run: rng.chance(200).then(|| 500 + rng.below(4_000)),
                infrastructure,
                application,
                capacity,
                quota,
                memory,
                restart,
            };
            let in_queue = (queues && rng.chance(850)).then(|| InQueue {
                queue: rng.below(QUEUES as u64) as usize,
                priority: rng.pick(&[0, 0, 1, 2]),
                cores: 1 + rng.below(LARGEST),
            });
            Wanted {
                in_queue,
                tenant: rng.below(tenants) as usize,
                before: rng.below(2) as usize,
                beside: 1 + rng.below(2) as usize,
                refused: match rng.below(24) {
                    0 => Refused::Build,
                    1 => Refused::Before,
                    2 => Refused::Pod,
                    3 => Refused::Beside,
                    _ => Refused::Nothing,
                },
                exit_codes: [(); MOST_ATTEMPTS].map(|()| rng.pick(&[0, 0, 1, 52])),
                endless: idle.is_some() && rng.chance(800) || limits.run.is_some() && rng.chance(300),
                idle,
                limits,
            }
        });
        let wanted = wanted.collect();
        let mut maybe = |most: u64| if rng.chance(500) { 1 + rng.below(most) } else { 0 };
        Self {
            crash: maybe(25),
            pause: maybe(25),
            stop: maybe(4),
            lost: maybe(200),
            slow: maybe(150),
            away: maybe(10),
            clock: maybe(10),
            cut: maybe(150),
            repeat: maybe(500),
            compact: maybe(25),
            kill: maybe(30),
            uses: maybe(500),
            retention: maybe(10),
            outsider: maybe(40),
            strip: maybe(20),
            foreign: maybe(6),
            labels: maybe(40),
            identity: maybe(20),
            replace: maybe(10),
            forge: maybe(60),
            kill_all: maybe(4),
            denied: maybe(10),
            node: maybe(100),
            restarts: maybe(100),
            full: maybe(900),
            rules: maybe(60),
            hold: maybe(60),
            queues,
            lasts: rng.chance(400),
            flaw: None,
            wanted,
            guarded: (tenants == TENANTS && rng.chance(700)).then_some(1),
            replicas: 1 + rng.below(3) as usize,
            finalizer: !rng.chance(250),
            tick: rng.pick(&[4, 20, 80]),
            // In a short history most drivers run when the faults end.
            steps: if rng.chance(150) { 1_000 + rng.below(2_000) } else { 150 + rng.below(450) },
            at_once: rng.pick(&[1, 1, 4]),
        }
    }

    /// Ends all faults: everything in progress has to finish now.
    pub(crate) fn settle(&mut self) {
        *self = Self {
            wanted: std::mem::take(&mut self.wanted),
            replicas: self.replicas,
            guarded: self.guarded,
            finalizer: self.finalizer,
            tick: 20,
            steps: 0,
            at_once: self.at_once,
            crash: 0,
            pause: 0,
            stop: 0,
            lost: 0,
            slow: 0,
            away: 0,
            clock: 0,
            cut: 0,
            repeat: 0,
            compact: 0,
            kill: 0,
            // So rare that each session is idle at last.
            uses: self.uses.min(50),
            retention: 0,
            outsider: 0,
            strip: 0,
            foreign: 0,
            labels: 0,
            identity: 0,
            replace: 0,
            forge: 0,
            kill_all: 0,
            denied: 0,
            node: 0,
            restarts: 0,
            full: 0,
            rules: 0,
            hold: 0,
            queues: self.queues,
            lasts: false,
            flaw: self.flaw,
        };
    }
}
