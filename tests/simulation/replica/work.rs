//! Tasks: machines of the engine that are carried on effect by effect, several at once.

use sparkgate::submission::{
    Observation,
    engine::{self, Answer, Effect, Follow, Job, Kill, Launch, Machine, Settled},
};

use crate::{
    plan::Refused,
    store::{Claimed, Time},
    wire::{Ask, Told, Waiting},
    world::World,
};

const SLOTS: usize = 3;
/// Shorter than in the gateway, all of them: histories are.
const POLL: Time = 500;
const RECHECK: Time = 2_000;
const PAUSE: Time = 100;
const PAUSE_MAX: Time = 1_000;

/// What a task was begun for.
#[derive(Debug, Clone)]
pub(super) enum Cause {
    Claim { claim: i64, kill: bool, failed_tries: i32 },
    Seen(Box<Observation>),
    Missed(engine::Row),
}

#[derive(Debug, Clone)]
enum Under {
    Launch(Launch),
    Kill(Kill),
    Follow(Follow),
}

impl Under {
    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Launch(machine) => machine,
            Self::Kill(machine) => machine,
            Self::Follow(machine) => machine,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Task {
    id: u64,
    submission: usize,
    attempt: i32,
    cause: Cause,
    under: Under,
    /// What it waits for.
    request: Option<u64>,
    /// How the claim is given back, until that is answered.
    giving_back: Option<Ask>,
    again_at: Time,
    /// The shown thing that it takes in.
    pub(super) item: Option<u64>,
}

impl World {
    pub(super) fn claim_steps(&mut self, at: usize) {
        let (now, replica) = (self.now, &mut self.replicas[at]);
        let free = SLOTS.saturating_sub(replica.tasks.iter().filter(|task| task.item.is_none()).count());
        let may = replica.believes_in_its_lease(now) && replica.claim_request.is_none() && !replica.stopping;
        if may && now >= replica.claim_at && free > 0 {
            replica.claim_at = now + POLL;
            let request = self.send(at, Waiting::Claim, Ask::Claim(free));
            self.replicas[at].claim_request = Some(request);
        }
    }

    pub(super) fn hear_of_claim(&mut self, at: usize, told: Told) {
        self.replicas[at].claim_request = None;
        // Rows may be claimed by this session that nobody works on.
        let Told::Claimed(all) = told else { return self.step_down(at) };
        for claimed in all {
            self.begin_claimed(at, claimed);
        }
    }

    fn begin_claimed(&mut self, at: usize, claimed: Claimed) {
        let Claimed { submission, attempt, kill, pod_uid, epoch, failed_tries } = claimed;
        let wanted = self.plan.wanted[submission];
        let job = Job { pod_uid, before: wanted.before, beside: wanted.beside };
        let under = if kill {
            Under::Kill(Kill::begin(job))
        } else if wanted.refused == Refused::Build {
            Under::Launch(Launch::refuse(job, "Refused", "it can't be built".to_owned()))
        } else {
            Under::Launch(Launch::begin(job))
        };
        self.begin(at, submission, attempt, Cause::Claim { claim: epoch, kill, failed_tries }, under, None);
    }

    /// Takes one look at a pod, or the lack of one, to its row.
    pub(super) fn begin_follow(&mut self, at: usize, submission: usize, attempt: i32, cause: Cause, item: u64) {
        self.begin(at, submission, attempt, cause.clone(), Under::Follow(follow(&cause)), Some(item));
    }

    fn begin(&mut self, at: usize, submission: usize, attempt: i32, cause: Cause, under: Under, item: Option<u64>) {
        self.last_request += 1;
        let id = self.last_request;
        let (request, giving_back) = (None, None);
        self.replicas[at].tasks.push(Task {
            id,
            submission,
            attempt,
            cause,
            under,
            request,
            giving_back,
            again_at: 0,
            item,
        });
    }

    /// One task asks for what it needs next.
    pub(super) fn work_steps(&mut self, at: usize) {
        let Some(place) = self.rng.place(self.replicas[at].tasks.len()) else { return };
        let (now, replica) = (self.now, &mut self.replicas[at]);
        let task = &mut replica.tasks[place];
        if task.request.is_some() || task.again_at > now {
            return;
        }
        let claim = match task.cause {
            Cause::Claim { claim, .. } => Some(claim),
            Cause::Seen(_) | Cause::Missed(_) => None,
        };
        let ask = match (&task.giving_back, task.under.machine().effect()) {
            (Some(ask), _) => ask.clone(),
            (None, Effect::Settle(settled)) => {
                let settled = settled.clone();
                return self.settled(at, place, settled);
            }
            (None, effect) => {
                let effect = effect.clone();
                // The last look before a write: what is sent now may still arrive late.
                if effect.writes_to_the_cluster() && now >= replica.trusted_until {
                    return self.step_down(at);
                }
                Ask::Effect { submission: task.submission, attempt: task.attempt, claim, effect }
            }
        };
        let id = task.id;
        let request = self.send(at, Waiting::Task(id), ask);
        self.replicas[at].tasks[place].request = Some(request);
    }

    pub(super) fn hear_of_task(&mut self, at: usize, id: u64, request: u64, told: Told) {
        let tasks = &mut self.replicas[at].tasks;
        let waits = |task: &Task| task.id == id && task.request == Some(request);
        let Some(place) = tasks.iter().position(waits) else { return };
        let task = &mut tasks[place];
        task.request = None;
        match told {
            Told::Answer(answer) => task.under.machine().answer(answer),
            Told::Done => {
                tasks.swap_remove(place);
                // A kill may have come meanwhile.
                self.replicas[at].claim_at = 0;
            }
            _ if task.giving_back.is_none() => task.under.machine().answer(Answer::Unknown("no answer".to_owned())),
            _ => {}
        }
    }

    fn settled(&mut self, at: usize, place: usize, settled: Settled) {
        let now = self.now;
        let task = &mut self.replicas[at].tasks[place];
        let submission = task.submission;
        match &task.cause {
            Cause::Claim { claim, kill, failed_tries } => {
                let (claim, kill) = (*claim, *kill);
                let later = |delay, failed| Ask::RetryLater { submission, claim, kill, delay, failed };
                task.giving_back = Some(match settled {
                    Settled::Done => Ask::Release { submission, claim },
                    Settled::LookAgain => later(RECHECK, false),
                    Settled::TryAgain(_) => later((PAUSE << (*failed_tries).clamp(0, 5)).min(PAUSE_MAX), true),
                    Settled::GivenUp(_) => later(PAUSE_MAX, true),
                });
            }
            cause @ (Cause::Seen(_) | Cause::Missed(_)) => {
                if let Settled::TryAgain(_) = settled {
                    task.under = Under::Follow(follow(cause));
                    task.again_at = now + PAUSE;
                } else {
                    let task = self.replicas[at].tasks.swap_remove(place);
                    self.taken_in(at, task.item);
                }
            }
        }
    }
}

fn follow(cause: &Cause) -> Follow {
    match cause {
        Cause::Seen(seen) => Follow::seen(seen.clone()),
        Cause::Missed(row) => Follow::missed(row.clone()),
        Cause::Claim { .. } => unreachable!("a claim is followed by nothing"),
    }
}
