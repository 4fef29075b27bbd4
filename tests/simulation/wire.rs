//! Requests on their way to the database and the cluster, and what becomes of them.

use sparkgate::submission::engine::{self, Answer, Effect, Found};

use crate::{
    cluster::{Whose, uid_number, uid_text},
    counts::Count,
    plan::Refused,
    store::{Claimed, LEASE_TTL, LeaseName, Session, Time},
    world::World,
};

/// Who waits for the answer within a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Lease,
    Claim,
    Task(u64),
    Watch,
}

#[derive(Debug, Clone)]
pub(crate) enum Ask {
    Acquire(LeaseName),
    Renew,
    EndLeases,
    Claim { limit: usize, busy: Vec<usize> },
    Effect { submission: usize, attempt: i32, claim: Option<i64>, effect: Effect },
    Release { submission: usize, claim: i64 },
    RetryLater { submission: usize, claim: i64, kill: bool, delay: Time, failed: bool },
    Live,
    Position,
    KeepPosition(u64),
}

#[derive(Debug, Clone)]
pub(crate) enum Told {
    Held(bool),
    Renewed(Vec<LeaseName>),
    Claimed(Vec<Claimed>),
    Answer(Answer),
    Live(Vec<(usize, engine::Row)>),
    Position(Option<u64>),
    Done,
    /// No answer: it may have been done or not.
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
    /// Nobody waits for its answer any more.
    pub(crate) abandoned: bool,
    pub(crate) ask: Ask,
}

impl World {
    /// Sends a request off; answers its number.
    pub(crate) fn send(&mut self, replica: usize, waiting: Waiting, ask: Ask) -> u64 {
        self.last_request += 1;
        let slow = self.rng.chance(self.plan.slow);
        let held_until = if slow { self.now + self.rng.below(6_000) } else { 0 };
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

    /// One request arrives; which one is anybody's guess.
    pub(crate) fn carry_out_one(&mut self) {
        let Some(at) = self.rng.place(self.wire.len()) else { return };
        if self.wire[at].held_until > self.now {
            // Whoever waits may give up first.
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
        if replica.alive && replica.session == request.session {
            replica.told.push((request.id, request.waiting, request.sent_at, told));
        }
    }

    fn carry_out(&mut self, request: &Request) -> Told {
        if let Ask::Effect { submission, attempt, claim, effect } = &request.ask {
            self.counts.effect(effect);
            return Told::Answer(self.effect(*submission, *attempt, *claim, effect));
        }
        if self.now < self.database_away_until {
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
            Ask::Renew => Told::Renewed(store.renew_leases(session, LEASE_TTL)),
            Ask::EndLeases => {
                store.end_leases(session);
                Told::Done
            }
            Ask::Claim { limit, busy } => {
                let claimed = store.claim(session, *limit, busy);
                for claim in &claimed {
                    if claim.epoch > 1 {
                        self.counts.add(Count::Takeover);
                    }
                    self.check(claim.submission);
                }
                Told::Claimed(claimed)
            }
            Ask::Release { submission, claim } => {
                store.release(*submission, *claim);
                Told::Done
            }
            Ask::RetryLater { submission, claim, kill, delay, failed } => {
                store.retry_later(*submission, *claim, *kill, *delay, *failed);
                Told::Done
            }
            Ask::Live => Told::Live(store.live()),
            Ask::Position => Told::Position(store.position),
            Ask::KeepPosition(version) => {
                store.position = Some(*version);
                Told::Done
            }
            Ask::Effect { .. } => Told::Nothing,
        }
    }

    fn effect(&mut self, submission: usize, attempt: i32, claim: Option<i64>, effect: &Effect) -> Answer {
        let of_the_cluster = effect.writes_to_the_cluster() || *effect == Effect::LookUp;
        let away = if of_the_cluster { self.cluster_away_until } else { self.database_away_until };
        if self.now < away {
            return Answer::Unknown("away".to_owned());
        }
        let answer = match effect {
            Effect::Read => return Answer::Row(self.store.read(submission)),
            Effect::LookUp => return Answer::Found(self.look_up(submission, attempt)),
            Effect::RecordPod(uid) => {
                let claim = claim.unwrap_or_default();
                Answer::Moved(self.store.record_pod(submission, attempt, claim, uid))
            }
            Effect::Advance(progress, placement) => {
                let unowned =
                    self.cluster.names[submission].before.iter().flatten().any(|object| object.owner.is_none());
                self.truths.submissions[submission].may_leave_an_object |= claim.is_none() && unowned;
                Answer::Moved(self.store.advance(submission, attempt, claim, progress, placement))
            }
            Effect::NoteWaiting { .. } | Effect::Settle(_) => return Answer::Done,
            write => return self.write(submission, attempt, claim, write),
        };
        self.check(submission);
        answer
    }

    fn look_up(&self, submission: usize, attempt: i32) -> Found {
        let Some(pod) = self.cluster.names[submission].pod else { return Found::Nothing };
        match pod.observation(&self.ids[submission], false) {
            Some(seen) if seen.attempt == attempt => Found::Ours(Box::new(seen)),
            Some(_) | None => Found::Foreign,
        }
    }

    fn write(&mut self, submission: usize, attempt: i32, claim: Option<i64>, effect: &Effect) -> Answer {
        let now = self.now;
        let refused = self.plan.wanted[submission].refused;
        match effect {
            Effect::CreateBefore(_) if refused == Refused::Before => self.refuse(),
            Effect::CreateBefore(place) => {
                let late = !self.claim_holds(submission, claim);
                self.truths.submissions[submission].may_leave_an_object |= late;
                self.cluster.create_before(submission, *place);
                Answer::Done
            }
            Effect::CreatePod if refused == Refused::Pod => self.refuse(),
            Effect::CreatePod => self.create_pod(submission, attempt, claim),
            Effect::HandOver(place, uid) => {
                if self.cluster.hand_over(submission, *place, uid_number(uid), now) {
                    Answer::Done
                } else {
                    Answer::Refused { reason: "NotFound".to_owned(), message: String::new() }
                }
            }
            Effect::CreateBeside(..) if refused == Refused::Beside => self.refuse(),
            Effect::CreateBeside(place, uid) => {
                let late = !self.claim_holds(submission, claim);
                match self.cluster.create_beside(submission, *place, uid_number(uid), late, now) {
                    Ok(()) => Answer::Done,
                    Err(_) => Answer::Refused { reason: "AlreadyExists".to_owned(), message: String::new() },
                }
            }
            Effect::DeleteBefore(place) => {
                self.cluster.delete_before(submission, *place);
                Answer::Done
            }
            Effect::Delete(uid) => {
                let uid = uid_number(uid);
                if self.truths.pod(uid).stray && self.cluster.delete_pod(submission, uid, None, now) {
                    self.counts.add(Count::Reaped);
                }
                self.cluster.delete_pod(submission, uid, None, now);
                Answer::Done
            }
            Effect::LetGo(uid) => {
                self.cluster.let_go(submission, uid_number(uid), now);
                Answer::Done
            }
            _ => Answer::Done,
        }
    }

    fn refuse(&mut self) -> Answer {
        self.counts.add(Count::Refusal);
        Answer::Refused { reason: "Forbidden".to_owned(), message: "no".to_owned() }
    }

    fn create_pod(&mut self, submission: usize, attempt: i32, claim: Option<i64>) -> Answer {
        let ours = Whose::Ours { attempt };
        let Ok(uid) = self.cluster.create_pod(submission, ours, self.plan.finalizer, self.now) else {
            return Answer::Taken(String::new());
        };
        let holds = self.claim_holds(submission, claim);
        if !holds {
            self.counts.add(Count::Stray);
        }
        if let Err(wrong) = self.truths.create(submission, uid, holds, self.plan.finalizer) {
            self.fail(wrong);
        }
        Answer::Created(uid_text(uid))
    }

    fn claim_holds(&self, submission: usize, claim: Option<i64>) -> bool {
        let row = self.store.row(submission);
        row.is_some_and(|row| Some(row.claim_epoch) == claim && row.claimed_by.is_some() && !row.state.is_terminal())
    }
}
