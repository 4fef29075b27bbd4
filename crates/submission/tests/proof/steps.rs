//! What each step does, and when it is possible.

use sparkgate_submission::State;

use crate::{
    action::{Action, Link, Slot, Way},
    bounds::Seeded,
    machines::{Ask, Change, End, Reply, Work},
    model::Gateway,
    store::{Claim, Part, Row},
    truth::Invariant,
    view::{Body, Deletion},
    world::{At, Doing, Following, Late, Lease, Task, World},
};

impl Gateway {
    /// Does a step; `None` if the state doesn't allow it.
    pub(crate) fn apply(&self, world: &mut World, action: Action) -> Option<()> {
        match action {
            Action::Accept => world.row.is_none().then(|| world.row = Some(Row::accepted())),
            Action::Kill => self.kill(world),
            Action::Claim(at) => self.claim(world, at, true),
            Action::ClaimUnheard(at) => self.claim(world, at, false),
            Action::GiveBackUnknown(at) => self.give_back_unknown(world, at),
            Action::Step(at, slot, way) => match slot {
                Slot::Task => self.step_task(world, at, way),
                Slot::Following => self.step_following(world, at, way),
            },
            Action::Watch(at) => watch(world, at),
            Action::Resign(at) => self.resign(world, at, true),
            Action::ResignUnheard(at) => self.resign(world, at, false),
            Action::WatchExpires => self.watch_expires(world),
            Action::See(at, name) => {
                let pod = world.cluster.at(name).pod?;
                self.follow(world, at, Work::Seen(self.seen(pod.view(name, name, false))), name)
            }
            Action::SeeGone(at, name) => {
                let view = world.cluster.at(name).gone?;
                self.follow(world, at, Work::Seen(self.seen(view)), name)
            }
            Action::Miss(at) => {
                let row = world.row.filter(Row::has_pod)?;
                self.follow(world, at, Work::Missed(row.view()), row.attempt)
            }
            Action::LeaseRunsOut(at) => {
                let replica = world.replica_mut(at);
                (replica.lease == Lease::Held).then(|| replica.lease = Lease::Over)
            }
            Action::NewSession(at) => {
                let replica = world.replica(at);
                (replica.lease == Lease::Over && replica.reaches_database).then(|| world.end_session(at))
            }
            Action::Crash(at) => {
                world.end_session(at);
                Some(())
            }
            Action::Cut(at, link) => set(world, at, link, false),
            Action::Heal(at, link) => set(world, at, link, true),
            Action::Arrive => {
                let late = world.late.take()?;
                self.carry_out(world, late);
                Some(())
            }
            Action::QueueNext => {
                let row = world.row.as_mut().filter(|row| row.to_retry)?;
                row.retry();
                world.truth.breaks(Invariant::TerminalIsFinal);
                Some(())
            }
            Action::Start(name) => self.start(world, name),
            Action::Exit(name, code) => exit(world, name, code),
            Action::Collect(name) => world.cluster.has_garbage(name).then(|| world.cluster.collect(name)),
            Action::Evict(name) => {
                let pod = world.cluster.at(name).pod.filter(|pod| pod.ours && pod.deletion == Deletion::No)?;
                matches!(pod.body, Body::Waiting | Body::Running).then(|| {
                    world.truth.driver_mut(name).ended = Some(Body::Evicted);
                    world.cluster.end(name, Body::Evicted);
                })
            }
            Action::DeleteOutside(name) => {
                let pod = self.outsiders_pod(world, name)?;
                (pod.deletion == Deletion::No).then(|| {
                    world.truth.driver_mut(name).was_deleted = true;
                    world.cluster.delete(name, pod.uid);
                })
            }
            Action::StripFinalizer(name) => {
                let pod = self.outsiders_pod(world, name)?;
                pod.finalizer.then(|| {
                    world.truth.driver_mut(name).was_stripped = true;
                    world.cluster.remove_finalizer(name, pod.uid);
                })
            }
            Action::Forge(name) => {
                let is_named = self.bounds.outsiders && world.row.is_some_and(|row| row.attempt == name);
                let pod = is_named.then(|| world.cluster.create(name, false, Body::Exited(0)))?;
                pod.map(|_| world.truth.driver_mut(name).was_displaced = true)
            }
            Action::ForgedGoes(name) => {
                let pod = world.cluster.at(name).pod.filter(|pod| !pod.ours)?;
                world.cluster.delete(name, pod.uid);
                Some(())
            }
            Action::Restore => self.restore(world),
        }
    }

    fn outsiders_pod(&self, world: &World, name: u8) -> Option<crate::cluster::Pod> {
        world.cluster.at(name).pod.filter(|pod| self.bounds.outsiders && pod.ours)
    }

    fn kill(&self, world: &mut World) -> Option<()> {
        let live = |row: &&mut Row| !row.state.is_terminal() && row.state != State::Killing;
        let row = world.row.as_mut().filter(live).filter(|_| world.kills > 0)?;
        world.kills -= 1;
        let attempt = row.attempt;
        row.kill();
        let is_over = row.state == State::Killed;
        let has_pod = world.cluster.at(attempt).pod.is_some_and(|pod| pod.ours);
        let had_pod = has_pod || world.truth.driver(attempt).starts > 0;
        world.truth.killed = Some((attempt, had_pod));
        if is_over {
            let end = End { state: State::Killed, code: None, retried: false };
            world.truth.driver_mut(attempt).recorded = Some(end);
        }
        Some(())
    }

    /// Claims the row (`store/claim.rs`).
    fn claim(&self, world: &mut World, at: At, is_heard: bool) -> Option<()> {
        let replica = *world.replica(at);
        let may = replica.task.is_none() && replica.lease == Lease::Held && replica.reaches_database;
        let mut row = world.row.filter(Row::is_due).filter(|_| may && !is_cut_off(world, at))?;
        let holder = row.claimed_by.filter(|holder| *holder != at);
        if holder.is_some_and(|holder| world.replica(holder).lease == Lease::Held) {
            if !self.has(Seeded::ClaimsHeldRows) {
                return None;
            }
            world.truth.breaks(Invariant::OneHolder);
        }
        world.new_number();
        row.claim(at);
        world.row = Some(row);
        if is_heard {
            world.replica_mut(at).task = Some(self.task(&row));
        }
        Some(())
    }

    /// Begins the work on a claimed row.
    fn task(&self, row: &Row) -> Task {
        let (kills, is_named) = (row.state == State::Killing, row.named == row.attempt);
        // An attempt without stored objects has nothing to delete under its own names, because it has none yet.
        let is_unmade = kills && !is_named;
        let made = |count: u8| if is_unmade { 0 } else { count };
        let uid = if self.has(Seeded::ForgetsThePod) && !kills { 0 } else { row.uid };
        let (before, beside) = (made(self.bounds.before), made(self.bounds.beside));
        let work = if kills { Work::Kill { uid, before, beside } } else { Work::Launch { uid, before, beside } };
        let machine = self.machines.begin(work);
        Task {
            attempt: row.attempt,
            name: if is_unmade { row.named } else { row.attempt },
            claim: Claim::Current,
            is_recorded: row.uid != 0,
            doing: if is_named || kills { Doing::Machine(machine) } else { Doing::Naming(machine) },
            is_stopped: false,
            part: Part::default(),
        }
    }

    fn give_back_unknown(&self, world: &mut World, at: At) -> Option<()> {
        let may = is_cut_off(world, at) && world.replica(at).task.is_none() && world.replica(at).reaches_database;
        let row = world.row.as_mut().filter(|row| may && row.is_due() && row.claimed_by == Some(at))?;
        (!self.has(Seeded::KeepsUnknownClaims)).then(|| row.claimed_by = None)
    }

    /// Lets the work under a claim do one thing.
    fn step_task(&self, world: &mut World, at: At, way: Way) -> Option<()> {
        let mut task = world.replica(at).task?;
        let machine = match task.doing {
            Doing::Machine(machine) => machine,
            Doing::Naming(machine) => {
                if !matches!(way, Way::Answered | Way::ReplyLost) || !world.replica(at).reaches_database {
                    return None;
                }
                let kept = world.row.as_mut().is_some_and(|row| row.keep_names(task.attempt, task.claim));
                task.doing = if way == Way::ReplyLost { Doing::GivingBack } else { Doing::Machine(machine) };
                // Another replica continues.
                world.replica_mut(at).task = (kept || way == Way::ReplyLost).then_some(task);
                return Some(());
            }
            Doing::GivingBack => {
                if way != Way::Answered || !world.replica(at).reaches_database {
                    return None;
                }
                if let Some(row) = world.row.as_mut().filter(|_| task.claim == Claim::Current) {
                    row.claimed_by = None;
                }
                world.replica_mut(at).task = None;
                return Some(());
            }
        };
        let ask = self.machines.ask(machine);
        if let Ask::Settle { given_back } = ask {
            // Nothing is sent: the next request gives the claim back.
            task.doing = Doing::GivingBack;
            world.replica_mut(at).task = Some(task).filter(|_| !given_back);
            return (way == Way::Answered).then_some(());
        }
        if ask == Ask::CreatePod && task.is_recorded {
            world.truth.breaks(Invariant::NoSecondPod);
        }
        let request = Late { attempt: task.attempt, name: task.name, claim: Some(task.claim), ask };
        let writes = self.machines.writes(machine);
        if self.is_in_parts(world, at, ask, way) {
            let done = self.carry_out_part(world, request, task.part);
            // The effect may have made the claim old.
            if let Some(task) = world.replica_mut(at).task.as_mut() {
                match done {
                    Ok(reply) => {
                        (task.doing, task.part) = (Doing::Machine(self.machines.step(machine, reply)), Part::default())
                    }
                    Err(next) => task.part = next,
                }
            }
            return Some(());
        }
        match self.request(world, at, request, (way, writes, task.is_stopped))? {
            None => world.replica_mut(at).task = Some(Task { is_stopped: true, ..task }),
            Some(reply) => {
                // The effect may have made the claim old.
                if let Some(task) = world.replica_mut(at).task.as_mut() {
                    task.doing = Doing::Machine(self.machines.step(machine, reply));
                    (task.is_stopped, task.part) = (false, Part::default());
                }
            }
        }
        Some(())
    }

    /// Lets the processing of an observation do one thing.
    fn step_following(&self, world: &mut World, at: At, way: Way) -> Option<()> {
        let following = world.replica(at).following?;
        let Following { attempt, machine, is_stopped, part } = following;
        let ask = self.machines.ask(machine);
        let request = Late { attempt, name: attempt, claim: None, ask };
        let writes = self.machines.writes(machine);
        let reply = if self.is_in_parts(world, at, ask, way) {
            match self.carry_out_part(world, request, part) {
                Ok(reply) => Some(reply),
                Err(part) => {
                    world.replica_mut(at).following = Some(Following { part, ..following });
                    return Some(());
                }
            }
        } else {
            self.request(world, at, request, (way, writes, is_stopped))?
        };
        let next = match reply {
            None => Some(Following { is_stopped: true, ..following }),
            Some(reply) => {
                let machine = self.machines.step(machine, reply);
                // What couldn't be processed is observed again.
                let is_over = matches!(self.machines.ask(machine), Ask::Settle { .. });
                let following = Following { attempt, machine, is_stopped: false, part: Part::default() };
                Some(following).filter(|_| !is_over)
            }
        };
        world.replica_mut(at).following = next;
        Some(())
    }

    /// Returns whether a request is a write of an end whose statements are steps of their own.
    fn is_in_parts(&self, world: &World, at: At, ask: Ask, way: Way) -> bool {
        let is_end = matches!(ask, Ask::Advance(Change::Ended(_), _));
        self.bounds.restart && is_end && way == Way::Answered && world.replica(at).reaches_database
    }

    /// Sends a request. Returns its result; `Some(None)` if the process is stopped before it sends it.
    fn request(
        &self,
        world: &mut World,
        at: At,
        request: Late,
        (way, writes, is_stopped): (Way, bool, bool),
    ) -> Option<Option<Reply>> {
        let replica = *world.replica(at);
        if writes && replica.lease == Lease::Over && !is_stopped {
            // It gives its session up instead.
            if !self.has(Seeded::NoLeaseCheck) {
                return None;
            }
            world.truth.breaks(Invariant::WritesUnderLease);
        }
        let ask = request.ask;
        if self.has(Seeded::FinalizerFirst)
            && let Ask::Advance(Change::Ended(_), uid) = ask
        {
            world.check_finalizer(request.name, uid);
            world.cluster.remove_finalizer(request.name, uid);
        }
        let reaches = if writes || ask == Ask::LookUp { replica.reaches_cluster } else { replica.reaches_database };
        if !reaches {
            return (way == Way::Answered).then(|| Some(self.unanswered(ask)));
        }
        match way {
            Way::Answered => Some(Some(self.carry_out(world, request))),
            // A read that isn't answered is like one that is cut off.
            Way::ReplyLost => {
                self.carry_out(world, request);
                Some(Some(self.unanswered(ask)))
            }
            Way::Late => {
                let is_write = writes || matches!(ask, Ask::RecordPod(_) | Ask::Advance(..));
                (is_write && world.late.is_none()).then(|| {
                    world.late = Some(request);
                    Some(self.unanswered(ask))
                })
            }
            Way::Stopped => (writes && !is_stopped && replica.lease == Lease::Held).then(|| {
                world.replica_mut(at).lease = Lease::Over;
                None
            }),
        }
    }

    /// Begins to process an observation, if the replica holds the lease of the watch.
    fn follow(&self, world: &mut World, at: At, work: Work, attempt: u8) -> Option<()> {
        let replica = world.replica(at);
        let may =
            replica.watches && replica.lease == Lease::Held && replica.reaches_cluster && replica.following.is_none();
        may.then(|| {
            let machine = self.machines.begin(work);
            let following = Following { attempt, machine, is_stopped: false, part: Part::default() };
            world.replica_mut(at).following = Some(following);
        })
    }

    fn resign(&self, world: &mut World, at: At, is_heard: bool) -> Option<()> {
        let replica = *world.replica(at);
        let may = replica.watches && !replica.reaches_cluster && !self.has(Seeded::KeepsTheWatch);
        (may && (replica.reaches_database || !is_heard)).then(|| {
            world.replica_mut(at).watches = false;
            world.watch = world.watch.filter(|holder| *holder != at || !is_heard);
        })
    }

    /// The lease of the watch expires, because its holder doesn't renew it.
    fn watch_expires(&self, world: &mut World) -> Option<()> {
        let holder = world.watch?;
        let replica = *world.replica(holder);
        let wants = replica.watches || self.has(Seeded::RenewsWhatItResigned);
        let is_renewed = wants && replica.lease == Lease::Held;
        (!is_renewed).then(|| world.watch = None)
    }

    fn start(&self, world: &mut World, name: u8) -> Option<()> {
        let names = *world.cluster.at(name);
        let pod = names.pod.filter(|pod| pod.ours && pod.body == Body::Waiting && pod.deletion == Deletion::No)?;
        let config_map = names.beside[usize::from(self.bounds.beside) - 1];
        let is_complete = config_map == pod.uid && (names.before != 0 || self.bounds.before == 0);
        is_complete.then(|| {
            world.cluster.at_mut(name).pod = Some(crate::cluster::Pod { body: Body::Running, ..pod });
            world.driver_starts(name);
        })
    }

    /// Restores the backup. What was recorded since is forgotten, and numbers of later claims are higher than all before.
    fn restore(&self, world: &mut World) -> Option<()> {
        world.row.filter(|row| self.bounds.restore && *row != Row::accepted())?;
        world.row = Some(Row::accepted());
        world.new_number();
        world.watch = None;
        for replica in &mut world.replicas {
            replica.lease = Lease::Over;
        }
        // A kill is forgotten, too: what it did looks like a deletion from outside.
        let was_killed = world.truth.killed.take().is_some();
        world.truth.was_restored = true;
        for (driver, names) in world.truth.drivers.iter_mut().zip(world.cluster.names) {
            driver.was_forgotten |= driver.recorded.take().is_some();
            driver.was_deleted |= was_killed;
            // Nothing is left that tells of it.
            if names.pod.is_none() {
                driver.starts = 0;
            }
        }
        Some(())
    }
}

/// Returns whether the replica can't reach the API server, while another one watches.
fn is_cut_off(world: &World, at: At) -> bool {
    let replica = world.replica(at);
    !replica.reaches_cluster && !replica.watches && world.watch.is_some_and(|holder| holder != at)
}

fn watch(world: &mut World, at: At) -> Option<()> {
    let replica = world.replica_mut(at);
    let may = replica.lease == Lease::Held && replica.reaches_database && replica.reaches_cluster && !replica.watches;
    (may && world.watch.is_none()).then(|| {
        world.replica_mut(at).watches = true;
        world.watch = Some(at);
    })
}

fn set(world: &mut World, at: At, link: Link, reaches: bool) -> Option<()> {
    let replica = world.replica_mut(at);
    let field = match link {
        Link::Database => &mut replica.reaches_database,
        Link::Cluster => &mut replica.reaches_cluster,
    };
    (*field != reaches).then(|| *field = reaches)
}

fn exit(world: &mut World, name: u8, code: u8) -> Option<()> {
    let pod = world.cluster.at(name).pod.filter(|pod| pod.ours && pod.body == Body::Running)?;
    // A signal ends it only if it is asked to go; it may end by itself at that moment.
    let may = if pod.deletion == Deletion::No { code != 143 } else { code != 1 };
    may.then(|| {
        world.truth.driver_mut(name).ended = Some(Body::Exited(code));
        world.cluster.end(name, Body::Exited(code));
    })
}
