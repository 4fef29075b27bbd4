//! Tasks: state machines of the engine, which advance effect by effect, several at once.

use sparkgate::submission::{
    PodObservation,
    engine::{self, Effect, EffectResult, Follow, Job, Kill, Launch, Machine, Obstacle, Settled},
};

use crate::{
    cluster::uid_number,
    counts::Count,
    flaw::Flaw,
    names::{attempt_of, name_of, submission_of},
    plan::{Refused, TENANTS},
    store::{Claimed, LeaseName, Time},
    wire::{Ask, Told, Waiting},
    world::World,
};

const SLOTS: usize = 3;
/// The most that one tenant may use of them.
const OF_ONE_TENANT: usize = 2;
/// All of these are shorter than in the gateway, because histories are short.
const POLL: Time = 500;
const RECHECK: Time = 2_000;
const PAUSE: Time = 100;
const PAUSE_MAX: Time = 1_000;

/// The reason for which a task was started.
#[derive(Debug, Clone)]
pub(super) enum Cause {
    Claim { claim: i64, kill: bool, failed_tries: i32 },
    Seen(Box<PodObservation>),
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
    /// The names that it uses: an attempt's, or that of the observed pod.
    name: usize,
    cause: Cause,
    /// The names and objects of the attempt have to be stored first.
    to_keep: bool,
    /// And then how often its memory has grown, if it has.
    to_record: Option<u32>,
    under: Under,
    /// The request that it waits for.
    request: Option<u64>,
    /// The request that releases the claim, until it is answered.
    giving_back: Option<Ask>,
    again_at: Time,
    begun_at: Time,
    /// The watch's item that it processes.
    pub(super) item: Option<u64>,
}

impl World {
    /// Looks for overdue submissions, under a lease.
    pub(super) fn overdue_steps(&mut self, at: usize) {
        let (now, replica) = (self.now, &mut self.replicas[at]);
        if !replica.believes_in_its_lease(now) || replica.stopping {
            return;
        }
        if !replica.held.contains(&LeaseName::Deadlines) {
            if now >= replica.deadlines_at {
                replica.deadlines_at = now + 1_000;
                self.send(at, Waiting::Deadlines, Ask::Acquire(LeaseName::Deadlines));
            }
        } else if now >= replica.overdue_at {
            replica.overdue_at = now + POLL;
            self.send(at, Waiting::Nothing, Ask::KillOverdue);
        }
    }

    pub(super) fn claim_steps(&mut self, at: usize) {
        let (now, replica) = (self.now, &mut self.replicas[at]);
        let claimed = || replica.tasks.iter().filter(|task| matches!(task.cause, Cause::Claim { .. }));
        let free = SLOTS.saturating_sub(claimed().count());
        let mut room = [OF_ONE_TENANT; TENANTS as usize];
        for task in claimed() {
            let room = &mut room[self.truths.submissions[task.submission].tenant];
            *room = room.saturating_sub(1);
        }
        let is_cut_off = replica.cut_off && replica.elsewhere;
        let may = replica.believes_in_its_lease(now) && replica.claim_request.is_none() && !replica.stopping;
        if may && now >= replica.claim_at && free > 0 {
            let busy = claimed().map(|task| task.submission).collect();
            replica.claim_at = now + POLL;
            if is_cut_off {
                if self.plan.flaw != Some(Flaw::KeepsUnknownClaims) {
                    self.send(at, Waiting::Nothing, Ask::GiveBackUnknown { busy });
                }
                return;
            }
            let request = self.send(at, Waiting::Claim, Ask::Claim { limit: free, busy, room });
            self.replicas[at].claim_request = Some(request);
        }
    }

    pub(super) fn hear_of_claim(&mut self, at: usize, told: Told) {
        self.replicas[at].claim_request = None;
        let Told::Claimed(all) = told else { return };
        for claimed in all {
            self.begin_claimed(at, claimed);
        }
    }

    fn begin_claimed(&mut self, at: usize, claimed: Claimed) {
        let Claimed { submission, attempt, named, kill, pod_uid, epoch, failed_tries, grown } = claimed;
        let wanted = self.plan.wanted[submission];
        let kills = kill.is_some();
        // An attempt without stored objects has nothing to delete under its own names, because it has none yet.
        let (to_keep, unmade) = (named < attempt && !kills, named < attempt && kills);
        let name = name_of(submission, if unmade { named } else { attempt });
        let made = |count| if unmade { 0 } else { count };
        let (before, beside) = (made(wanted.before), made(wanted.beside));
        let job =
            Job { pod_uid, signed: true, held: self.plan.finalizer, before, beside, kill: kill.unwrap_or_default() };
        let under = if kills {
            Under::Kill(Kill::begin(job))
        } else if wanted.refused == Refused::Build {
            Under::Launch(Launch::refuse(job, "Refused", "it can't be built".to_owned()))
        } else {
            Under::Launch(Launch::begin(job))
        };
        let cause = Cause::Claim { claim: epoch, kill: kills, failed_tries };
        self.begin(at, name, (submission, attempt), cause, under, None);
        if let Some(task) = self.replicas[at].tasks.last_mut() {
            task.to_keep = to_keep;
            let forgets = self.plan.flaw == Some(Flaw::GrowsUnrecorded);
            task.to_record = Some(grown).filter(|grown| *grown > 0 && !kills && !forgets);
        }
    }

    /// Starts to process one observation of the pod of this name, or its absence, as the driver of the attempt `of`.
    pub(super) fn begin_follow(&mut self, at: usize, name: usize, of: usize, cause: Cause, item: u64) {
        let under = Under::Follow(follow(&cause));
        self.begin(at, name, (submission_of(of), attempt_of(of)), cause, under, Some(item));
    }

    fn begin(
        &mut self,
        at: usize,
        name: usize,
        (submission, attempt): (usize, i32),
        cause: Cause,
        under: Under,
        item: Option<u64>,
    ) {
        self.last_request += 1;
        let id = self.last_request;
        let (request, giving_back) = (None, None);
        self.replicas[at].tasks.push(Task {
            id,
            submission,
            attempt,
            name,
            cause,
            to_keep: false,
            to_record: None,
            under,
            request,
            giving_back,
            again_at: 0,
            begun_at: self.now,
            item,
        });
    }

    /// Sends the next request of one task.
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
            (None, _) if task.to_keep => {
                let claim = claim.unwrap_or_default();
                Ask::KeepAttempt { submission: task.submission, attempt: task.attempt, claim }
            }
            (None, _) if task.to_record.is_some() => {
                let (claim, grown) = (claim.unwrap_or_default(), task.to_record.unwrap_or_default());
                Ask::RecordGrowth { submission: task.submission, attempt: task.attempt, claim, grown }
            }
            (None, Effect::Settle(settled)) => {
                let settled = settled.clone();
                return self.settled(at, place, settled);
            }
            (None, effect) => {
                let effect = effect.clone();
                // The last check before a write: the request may still arrive late.
                if effect.writes_to_the_cluster() && now >= replica.trusted_until {
                    return self.step_down(at);
                }
                // What it decided is committed: the rest concerns this pod alone.
                if effect.writes_to_the_cluster()
                    && let Some(item) = task.item.take()
                {
                    return self.taken_in(at, Some(item));
                }
                Ask::Effect { submission: task.submission, attempt: task.attempt, name: task.name, claim, effect }
            }
        };
        let (id, begun_at) = (task.id, task.begun_at);
        if let (None, Ask::Effect { effect: Effect::Delete(uid), .. }) = (claim, &ask)
            && self.truths.pod(uid_number(uid)).ended_at.is_some_and(|ended_at| ended_at < begun_at)
            && !self.may_run_again(uid_number(uid))
        {
            self.fail(format!("pod {uid} had ended, and is deleted with its log"));
        }
        let request = self.send(at, Waiting::Task(id), ask);
        self.replicas[at].tasks[place].request = Some(request);
    }

    /// Returns whether the kubelet of a pod starts its driver again after each end: only its deletion ends it.
    fn may_run_again(&self, uid: u64) -> bool {
        self.cluster.names.iter().filter_map(|name| name.pod.as_ref()).any(|pod| pod.uid == uid && pod.restarts)
    }

    pub(super) fn hear_of_task(&mut self, at: usize, id: u64, request: u64, told: Told) {
        let tasks = &mut self.replicas[at].tasks;
        let waits = |task: &Task| task.id == id && task.request == Some(request);
        let Some(place) = tasks.iter().position(waits) else { return };
        let task = &mut tasks[place];
        task.request = None;
        match told {
            Told::EffectResult(answer) => task.under.machine().take_result(answer),
            Told::Kept(true) if task.to_keep => {
                task.to_keep = false;
                self.counts.add(Count::KeepAttempt);
            }
            Told::Kept(true) => {
                task.to_record = None;
                self.counts.add(Count::RecordGrowth);
            }
            // Another replica continues.
            Told::Kept(false) => drop(tasks.swap_remove(place)),
            Told::Done => {
                tasks.swap_remove(place);
                // A kill may have been requested meanwhile.
                self.replicas[at].claim_at = 0;
            }
            _ if task.to_keep || task.to_record.is_some() && task.giving_back.is_none() => {
                task.giving_back = task.give_back(Settled::TryAgain("no answer".to_owned()))
            }
            _ if task.giving_back.is_none() => {
                task.under.machine().take_result(EffectResult::Unknown("no answer".to_owned()))
            }
            _ => {}
        }
    }

    fn settled(&mut self, at: usize, place: usize, settled: Settled) {
        let now = self.now;
        let task = &mut self.replicas[at].tasks[place];
        match &task.cause {
            Cause::Claim { .. } if settled == Settled::GivenBack => {
                self.replicas[at].tasks.swap_remove(place);
                self.replicas[at].claim_at = 0;
            }
            Cause::Claim { .. } => task.giving_back = task.give_back(settled),
            cause @ (Cause::Seen(_) | Cause::Missed(_)) => {
                if let Settled::TryAgain(_) = settled {
                    task.under = Under::Follow(follow(cause));
                    task.again_at = now + PAUSE;
                    let item = task.item;
                    self.set_aside(at, item);
                } else {
                    let task = self.replicas[at].tasks.swap_remove(place);
                    self.taken_in(at, task.item);
                }
            }
        }
    }
}

impl Task {
    /// Returns the request that releases the claim.
    fn give_back(&self, settled: Settled) -> Option<Ask> {
        let Cause::Claim { claim, kill, failed_tries } = self.cause else { return None };
        let submission = self.submission;
        let full = matches!(settled, Settled::Postponed(Obstacle::Quota, _));
        let later = |delay, why| Ask::RetryLater { submission, claim, kill, delay, why, full };
        Some(match settled {
            Settled::Done | Settled::GivenBack | Settled::GivenUp(_) => Ask::Release { submission, claim },
            Settled::LookAgain => later(RECHECK, None),
            Settled::TryAgain(_) | Settled::Denied(_) | Settled::Postponed(..) => {
                later((PAUSE << failed_tries.clamp(0, 5)).min(PAUSE_MAX), Some("why"))
            }
        })
    }
}

fn follow(cause: &Cause) -> Follow {
    match cause {
        Cause::Seen(seen) => Follow::observed(seen.clone()),
        Cause::Missed(row) => Follow::missed(row.clone()),
        Cause::Claim { .. } => unreachable!("a claim is followed by nothing"),
    }
}
