//! Requests in flight to the database and the cluster, and their results.

mod effect;

use sparkgate::submission::{
    Transition,
    engine::{self, Effect, EffectResult},
    transition,
};

use crate::{
    cluster::Change,
    counts::Count,
    flaw::Flaw,
    names::submission_of,
    plan::TENANTS,
    store::{Claimed, LEASE_TTL, LeaseName, Picks, QUEUES, QueueRound, Session, Time},
    world::World,
};

/// The part of a replica that waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Lease,
    Claim,
    Task(u64),
    Watch,
    Deadlines,
    Queues,
    Sessions,
    Idle,
    Round,
    Resignation(LeaseName),
    Nothing,
}

#[derive(Debug, Clone)]
pub(crate) enum Ask {
    Acquire(LeaseName),
    /// Of the leases with these names.
    Renew(Vec<LeaseName>),
    EndLease(LeaseName),
    EndLeases,
    /// Whether another replica watches.
    WatchIsElsewhere,
    Claim {
        limit: usize,
        busy: Vec<usize>,
        room: [usize; TENANTS as usize],
    },
    /// The claims of the session that it doesn't know of: a reply may have been lost.
    GiveBackUnknown {
        busy: Vec<usize>,
    },
    KillOverdue,
    IdleSessions,
    EndIdle(usize),
    ReadQueues {
        heads: usize,
        largest: [Option<u64>; QUEUES],
        set_aside: Vec<usize>,
    },
    /// By the access file of this version.
    Admit {
        file: usize,
        version: u64,
        picks: Picks,
    },
    Effect {
        submission: usize,
        attempt: i32,
        name: usize,
        claim: Option<i64>,
        effect: Effect,
    },
    KeepAttempt {
        submission: usize,
        attempt: i32,
        claim: i64,
    },
    /// That the memory of the attempt has grown so often.
    RecordGrowth {
        submission: usize,
        attempt: i32,
        claim: i64,
        grown: u32,
    },
    Release {
        submission: usize,
        claim: i64,
    },
    RetryLater {
        submission: usize,
        claim: i64,
        kill: bool,
        delay: Time,
        why: Option<&'static str>,
        /// There was no room: a submission in a queue needs another admission.
        full: bool,
    },
    Live,
    Position,
    KeepPosition(u64),
}

#[derive(Debug, Clone)]
pub(crate) enum Told {
    Held(bool),
    Renewed {
        asked: Vec<LeaseName>,
        renewed: Vec<LeaseName>,
    },
    Elsewhere(bool),
    Claimed(Vec<Claimed>),
    Kept(bool),
    EffectResult(EffectResult),
    Live(Vec<(usize, engine::Row)>),
    Position(Option<u64>),
    Round(QueueRound),
    Idle(Vec<usize>),
    /// `None` if the decision was void.
    Admitted(Option<Vec<usize>>),
    Done,
    /// No answer: the request may have been carried out or not.
    Nothing,
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) replica: usize,
    pub(crate) session: Session,
    pub(crate) waiting: Waiting,
    pub(crate) sent_at: Time,
    pub(crate) held_until: Time,
    /// The sender no longer waits for the answer.
    pub(crate) abandoned: bool,
    pub(crate) ask: Ask,
}

impl World {
    /// Sends a request; returns its number.
    pub(crate) fn send(&mut self, replica: usize, waiting: Waiting, ask: Ask) -> u64 {
        self.last_request += 1;
        let slow = self.rng.chance(self.plan.slow);
        let mut held_until = if slow { self.now + self.rng.below(6_000) } else { 0 };
        if let Ask::Effect { submission, effect, .. } = &ask
            && effect.writes_to_the_cluster()
        {
            held_until = held_until.max(self.hangs_until(*submission));
        }
        let session = self.replicas[replica].session;
        let request = Request {
            id: self.last_request,
            replica,
            session,
            waiting,
            sent_at: self.now,
            held_until,
            abandoned: false,
            ask,
        };
        self.say(|_| format!("replica {replica} asks: {} {:?}", request.id, request.ask));
        self.wire.push(request);
        self.last_request
    }

    /// Delivers one request, chosen at random.
    pub(crate) fn carry_out_one(&mut self) {
        let Some(at) = self.rng.place(self.wire.len()) else { return };
        if self.wire[at].held_until > self.now {
            // The sender may time out first.
            if !self.settling && self.rng.chance(100) && !self.wire[at].abandoned {
                self.counts.add(Count::GivenUpWaiting);
                self.wire[at].abandoned = true;
                let request = self.wire[at].clone();
                self.say(|_| format!("replica {} waits no longer for {}", request.replica, request.id));
                self.tell(&request, Told::Nothing);
            }
            return;
        }
        let request = self.wire.swap_remove(at);
        if self.rng.chance(self.plan.lost) {
            if self.rng.chance(500) {
                self.counts.add(Count::RequestLost);
                self.say(|_| format!("{} is lost", request.id));
            } else {
                self.counts.add(Count::ReplyLost);
                let told = self.carry_out(&request);
                self.say(|_| format!("{} is carried out, its reply is lost: {told:?}", request.id));
            }
            self.tell(&request, Told::Nothing);
            return;
        }
        let told = self.carry_out(&request);
        self.say(|_| format!("{} is answered: {told:?}", request.id));
        self.tell(&request, told);
    }

    fn tell(&mut self, request: &Request, told: Told) {
        let replica = &mut self.replicas[request.replica];
        if replica.alive && replica.session == request.session && request.waiting != Waiting::Nothing {
            replica.told.push((request.id, request.waiting, request.sent_at, told));
        }
    }

    fn carry_out(&mut self, request: &Request) -> Told {
        if let Ask::Effect { submission, attempt, name, claim, effect } = &request.ask {
            self.counts.effect(effect);
            return Told::EffectResult(self.effect(request.replica, *submission, *attempt, *name, *claim, effect));
        }
        if !self.links.reaches_database(request.replica, self.now) || self.is_of_a_locked_row(&request.ask) {
            return Told::Nothing;
        }
        let (store, session) = (&mut self.store, request.session);
        match &request.ask {
            Ask::Acquire(name) => {
                let before = store.leases.get(name).map(|lease| lease.epoch);
                let held = store.acquire_lease(*name, session, LEASE_TTL);
                let after = store.leases.get(name).map(|lease| lease.epoch);
                if *name == LeaseName::Watch && before.is_some() && before != after {
                    self.counts.add(Count::WatchTakeover);
                }
                Told::Held(held)
            }
            Ask::Renew(asked) => {
                let mut names = asked.clone();
                if self.plan.flaw == Some(Flaw::RenewsWhatItResigned) {
                    let held = store.leases.iter().filter(|(_, lease)| lease.holder == session);
                    names = held.map(|(name, _)| *name).collect();
                }
                Told::Renewed { asked: asked.clone(), renewed: store.renew_leases(session, &names, LEASE_TTL) }
            }
            Ask::EndLease(_) if self.links.loses_resignations(request.replica) => Told::Nothing,
            Ask::EndLease(name) => {
                store.end_lease(*name, session);
                Told::Done
            }
            Ask::WatchIsElsewhere => Told::Elsewhere(store.is_elsewhere(LeaseName::Watch, session)),
            Ask::EndLeases => {
                store.end_leases(session);
                Told::Done
            }
            Ask::Claim { limit, busy, room } => {
                let mut room = *room;
                for (tenant, room) in room.iter_mut().enumerate() {
                    if self.links.is_locked(tenant, self.now) {
                        *room = 0;
                    }
                }
                let claimed = store.claim(session, *limit, busy, room);
                for claim in &claimed {
                    if claim.epoch > 1 {
                        self.counts.add(Count::Takeover);
                    }
                    self.check(claim.submission);
                }
                Told::Claimed(claimed)
            }
            Ask::GiveBackUnknown { busy } => {
                store.give_back_unknown(session, busy);
                Told::Done
            }
            Ask::Release { submission, claim } => {
                store.release(*submission, *claim);
                Told::Done
            }
            Ask::RetryLater { submission, claim, kill, delay, why, full } => {
                store.retry_later(*submission, *claim, *kill, *delay, *why);
                if *full {
                    store.note_full_quota(*submission, *claim);
                    store.return_to_queue(*submission, *claim);
                }
                Told::Done
            }
            Ask::ReadQueues { heads, largest, set_aside } => {
                Told::Round(store.queue_round(*heads, *largest, set_aside))
            }
            Ask::Admit { file, version, picks } => self.admit(session, *file, *version, picks),
            Ask::KeepAttempt { submission, attempt, claim } => {
                Told::Kept(store.keep_attempt(*submission, *attempt, *claim))
            }
            Ask::RecordGrowth { submission, attempt, claim, grown } => {
                Told::Kept(store.record_growth(*submission, *attempt, *claim, *grown))
            }
            Ask::KillOverdue => {
                for number in store.kill_overdue(2) {
                    self.is_overdue(number);
                }
                Told::Done
            }
            Ask::IdleSessions => Told::Idle(self.idle_sessions()),
            Ask::EndIdle(number) => {
                self.kill_idle(*number);
                Told::Done
            }
            Ask::Live => Told::Live(store.live()),
            Ask::Position => Told::Position(store.position),
            Ask::KeepPosition(version) => {
                if store.keep_position(session, *version) {
                    self.check_position(*version);
                }
                Told::Done
            }
            Ask::Effect { .. } => Told::Nothing,
        }
    }

    /// Returns whether the statement would wait for a row that another transaction has locked.
    fn is_of_a_locked_row(&self, ask: &Ask) -> bool {
        let (Ask::Release { submission, .. }
        | Ask::RetryLater { submission, .. }
        | Ask::EndIdle(submission)
        | Ask::KeepAttempt { submission, .. }
        | Ask::RecordGrowth { submission, .. }) = ask
        else {
            return false;
        };
        self.links.is_locked(self.truths.submissions[*submission].tenant, self.now)
    }

    fn is_overdue(&mut self, number: usize) {
        self.counts.add(Count::Overdue);
        self.say(|_| format!("row {number} is overdue"));
        if let Some(row) = self.store.row(number)
            && let Some(cause) = row.kill.clone()
        {
            self.truths.submissions[number].is_overdue(cause, row.no_room.is_some());
        }
        self.check(number);
    }

    /// Checks that everything before a stored position is in the rows: a watch that resumes there isn't sent it again.
    fn check_position(&mut self, version: u64) {
        let from = self.shown_from;
        let known = self.cluster.log.iter().filter(|change| change.version > from && change.version <= version);
        let missed = known.into_iter().find(|change| {
            let Some(seen) = change.pod.observation(|of| self.id_of(of), change.gone) else { return false };
            let submission = change.pod.shown_as().map(submission_of);
            let Some(row) = submission.and_then(|submission| self.store.read(submission)) else { return false };
            // The pod still exists, or is deleted without a watch that reports it. A pod that lost its identity before
            // it was recorded is found by the next list.
            let unsigned = self.truths.pods.get(change.pod.uid as usize).is_some_and(|pod| pod.unsigned);
            if change.left || unsigned {
                return false;
            }
            let is_its_pod = row.pod_uid.as_deref().is_some_and(|uid| uid == seen.pod_uid);
            is_its_pod && matches!(transition(row.state, &row.kill, &seen), Transition::Ended(_))
        });
        if let Some(Change { version, pod, .. }) = missed.copied() {
            self.fail(format!("the end of pod {} at version {version} is behind the position, and in no row", pod.uid));
        }
    }
}
