//! The watch: reports changes and lists, and stores its position once they are processed.

use std::collections::VecDeque;

use super::work::Cause;
use crate::{
    cluster::{Change, uid_number},
    counts::Count,
    flaw::Flaw,
    links::Way,
    names::{attempt_of, name_of, submission_of},
    store::{LeaseName, Time},
    wire::{Ask, Told, Waiting},
    world::World,
};

/// One reported item. If it has a version, a watch may resume there after this item and all before it are processed.
#[derive(Debug, Clone)]
struct Item {
    id: u64,
    shown: Shown,
    version: Option<u64>,
    progress: Taking,
    /// It couldn't be processed, and is tried again while others are processed.
    aside: bool,
}

impl Item {
    /// Returns whether the items behind it wait for it.
    fn is_in_order(&self) -> bool {
        !self.aside && self.progress != Taking::Done
    }
}

#[derive(Debug, Clone)]
enum Shown {
    Change(Change),
    /// The end of a list: submission, attempt and uid of each pod.
    Listed(Vec<(usize, i32, u64)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taking {
    NotYet,
    /// The number of tasks that process it.
    ByTasks(usize),
    Done,
}

/// How long a watch may be broken before its replica leaves it to another one; shorter than in the gateway.
const GIVE_UP: Time = 1_500;

#[derive(Debug, Clone, Default)]
pub(crate) struct Watch {
    broken_since: Option<Time>,
    /// Whether the position has been read.
    read: bool,
    connected: bool,
    items: VecDeque<Item>,
    cursor: u64,
    taken_in: Option<u64>,
    kept: Option<u64>,
}

impl Watch {
    fn show(&mut self, id: &mut u64, shown: Shown, version: Option<u64>) {
        *id += 1;
        self.items.push_back(Item { id: *id, shown, version, progress: Taking::NotYet, aside: false });
    }
}

impl World {
    pub(super) fn watch_steps(&mut self, at: usize) {
        let (now, replica) = (self.now, &mut self.replicas[at]);
        if !replica.believes_in_its_lease(now) || replica.stopping || replica.watch_request.is_some() {
            return;
        }
        let Some(watch) = &mut replica.watch else {
            if now >= replica.watch_at {
                replica.watch_at = now + 1_000;
                self.ask_for_watch(at, Ask::WatchIsElsewhere);
            }
            return;
        };
        if self.links.to_cluster(at, now) == Way::Open {
            watch.broken_since = None;
        } else {
            // What was reported before is still processed, as far as that needs no cluster.
            watch.connected = false;
            let since = *watch.broken_since.get_or_insert(now);
            if now >= since + GIVE_UP && self.plan.flaw != Some(Flaw::KeepsTheWatch) {
                return self.give_up_the_watch(at);
            }
        }
        if !watch.read {
            return self.ask_for_watch(at, Ask::Position);
        }
        if !watch.connected && self.links.to_cluster(at, now) == Way::Open {
            return self.connect(at);
        }
        // From time to time it lists again, which finds what no change reported. Without faults, it has processed the previous
        // list by then.
        let listed = !watch.items.iter().any(Item::is_in_order);
        let lists_again = if self.settling { listed && self.rng.chance(40) } else { self.rng.chance(3) };
        if lists_again || self.rng.chance(self.plan.cut) {
            self.cut(at);
            return;
        }
        match self.rng.below(4) {
            0 if self.replicas[at].watch.as_ref().is_some_and(|watch| watch.connected) => self.read_on(at),
            1 => self.keep_position(at),
            _ => self.process_reports(at),
        }
    }

    fn ask_for_watch(&mut self, at: usize, ask: Ask) {
        let request = self.send(at, Waiting::Watch, ask);
        self.replicas[at].watch_request = Some(request);
    }

    pub(super) fn hear_of_watch(&mut self, at: usize, told: Told) {
        let replica = &mut self.replicas[at];
        replica.watch_request = None;
        match (told, &mut replica.watch) {
            (Told::Elsewhere(elsewhere), None) => self.may_watch(at, elsewhere),
            (Told::Held(true), None) => {
                replica.held.insert(LeaseName::Watch);
                replica.watch = Some(Watch::default());
            }
            (Told::Position(position), Some(watch)) if !watch.read => {
                watch.read = true;
                watch.taken_in = position;
                watch.kept = position;
            }
            (Told::Live(live), Some(_)) => self.compare(at, live),
            _ => {}
        }
    }

    /// Tries to acquire the lease, if no other replica has it and the pods can be listed from here.
    fn may_watch(&mut self, at: usize, elsewhere: bool) {
        let reaches = self.links.to_cluster(at, self.now) == Way::Open;
        let replica = &mut self.replicas[at];
        (replica.elsewhere, replica.cut_off) = (elsewhere, !reaches);
        if !elsewhere && reaches {
            self.ask_for_watch(at, Ask::Acquire(LeaseName::Watch));
        }
    }

    fn give_up_the_watch(&mut self, at: usize) {
        self.say(|_| format!("replica {at} leaves the watch to another one"));
        self.counts.add(Count::GaveUpTheWatch);
        self.replicas[at].cut_off = true;
        self.stop_watching(at);
        self.resign(at, LeaseName::Watch);
    }

    /// Stops the watch, because another replica holds the lease.
    pub(super) fn stop_watching(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        replica.watch = None;
        replica.watch_request = None;
        replica.tasks.retain(|task| task.item.is_none());
    }

    /// Breaks the connection. All reported but unprocessed items are lost.
    fn cut(&mut self, at: usize) {
        self.say(|_| format!("replica {at}: its watch is cut"));
        self.counts.add(Count::WatchCut);
        let replica = &mut self.replicas[at];
        replica.tasks.retain(|task| task.item.is_none());
        if let Some(watch) = &mut replica.watch {
            watch.items.clear();
            watch.connected = false;
        }
    }

    /// Reports the changes since the position, if they aren't compacted, and a full list before or after them.
    fn connect(&mut self, at: usize) {
        let changes_first = self.rng.chance(500);
        let Some(watch) = &mut self.replicas[at].watch else { return };
        let version = self.cluster.version();
        let since = watch.taken_in.and_then(|taken| self.cluster.since(taken));
        if since.is_some() {
            self.counts.add(Count::Resumed);
        } else {
            self.shown_from = self.shown_from.max(version);
        }
        let changes = since.unwrap_or_default();
        let mut listed = Vec::new();
        let id = &mut self.last_request;
        if changes_first {
            changes.iter().for_each(|change| watch.show(id, Shown::Change(*change), Some(change.version)));
        }
        for pod in self.cluster.pods() {
            if let Some(of) = pod.shown_as() {
                listed.push((submission_of(of), attempt_of(of), pod.uid));
                watch.show(id, Shown::Change(Change { version, pod: *pod, gone: false, left: false }), None);
            }
        }
        if !changes_first {
            changes.iter().for_each(|change| watch.show(id, Shown::Change(*change), None));
        }
        watch.show(id, Shown::Listed(listed), Some(version));
        watch.cursor = version;
        watch.connected = true;
        self.counts.add(Count::Relisted);
        self.say(|_| format!("replica {at} lists the pods at version {version}"));
    }

    /// Reads what the API server has sent so far.
    fn read_on(&mut self, at: usize) {
        let most = 1 + self.rng.below(4) as usize;
        let twice = self.rng.chance(self.plan.repeat);
        let Some(watch) = &mut self.replicas[at].watch else { return };
        let Some(changes) = self.cluster.since(watch.cursor) else {
            // 410: a list follows, after everything reported before it is processed.
            watch.connected = false;
            return;
        };
        for change in changes.iter().take(most) {
            watch.cursor = change.version;
            watch.show(&mut self.last_request, Shown::Change(*change), Some(change.version));
            if twice {
                self.counts.add(Count::Repeated);
                watch.show(&mut self.last_request, Shown::Change(*change), Some(change.version));
            }
        }
    }

    fn keep_position(&mut self, at: usize) {
        let Some(watch) = &mut self.replicas[at].watch else { return };
        if let Some(version) = watch.taken_in.filter(|_| watch.taken_in != watch.kept) {
            watch.kept = Some(version);
            self.ask_for_watch(at, Ask::KeepPosition(version));
        }
    }

    /// Starts processing an item.
    fn process_reports(&mut self, at: usize) {
        let choice = self.rng.below(self.plan.at_once as u64) as usize;
        let Some(watch) = &mut self.replicas[at].watch else { return };
        let mut in_order = (0..).zip(&watch.items).filter(|(_, item)| item.is_in_order());
        let barrier = in_order.clone().position(|(_, item)| matches!(item.shown, Shown::Listed(_)));
        // A list is compared only after all items before it are processed or set aside, and no item after it is started earlier.
        let window = barrier.map_or_else(|| in_order.clone().count(), |barrier| barrier.max(1)).min(choice + 1);
        let Some(place) = window.checked_sub(1).and_then(|last| in_order.nth(last)).map(|(place, _)| place) else {
            return;
        };
        let item: &mut Item = &mut watch.items[place];
        if item.progress != Taking::NotYet {
            return;
        }
        if place > 0 {
            self.counts.add(Count::Reordered);
        }
        match &item.shown {
            Shown::Listed(_) => self.ask_for_watch(at, Ask::Live),
            Shown::Change(change) => {
                let (change, id) = (*change, item.id);
                let seen = change.pod.observation(|of| self.ids[submission_of(of)].clone(), change.gone);
                item.progress = if seen.is_some() { Taking::ByTasks(1) } else { Taking::Done };
                match seen.zip(change.pod.shown_as()) {
                    Some((seen, of)) => self.begin_follow(at, change.pod.name, of, Cause::Seen(Box::new(seen)), id),
                    None => self.taken_in(at, None),
                }
            }
        }
    }

    /// Looks up the live rows whose pod wasn't in the list.
    fn compare(&mut self, at: usize, live: Vec<(usize, sparkgate::submission::engine::Row)>) {
        let Some(watch) = &mut self.replicas[at].watch else { return };
        let Some(item) = watch.items.iter_mut().find(|item| item.is_in_order()) else { return };
        let Shown::Listed(listed) = &item.shown else { return };
        let is_listed = |submission: usize, row: &sparkgate::submission::engine::Row| {
            listed.iter().any(|(name, attempt, uid)| {
                *name == submission
                    && *attempt == row.attempt
                    && row.pod_uid.as_deref().is_none_or(|text| uid_number(text) == *uid)
            })
        };
        let missed: Vec<_> = live.into_iter().filter(|(submission, row)| !is_listed(*submission, row)).collect();
        item.progress = if missed.is_empty() { Taking::Done } else { Taking::ByTasks(missed.len()) };
        let id = item.id;
        for (submission, row) in missed {
            let name = name_of(submission, row.attempt);
            self.begin_follow(at, name, name, Cause::Missed(row), id);
        }
        self.taken_in(at, None);
    }

    /// Sets an item aside that can't be processed for the moment: the position isn't stored before it is.
    pub(super) fn set_aside(&mut self, at: usize, item: Option<u64>) {
        if self.plan.flaw == Some(Flaw::HoldsUpTheWatch) {
            return;
        }
        let Some(watch) = &mut self.replicas[at].watch else { return };
        if let Some(item) = watch.items.iter_mut().find(|shown| Some(shown.id) == item && !shown.aside) {
            item.aside = true;
            self.counts.add(Count::SetAside);
        }
    }

    /// Completes the part of one task in an item.
    pub(super) fn taken_in(&mut self, at: usize, item: Option<u64>) {
        let Some(watch) = &mut self.replicas[at].watch else { return };
        if let Some(item) = watch.items.iter_mut().find(|shown| Some(shown.id) == item) {
            item.progress = match item.progress {
                Taking::ByTasks(tasks) if tasks > 1 => Taking::ByTasks(tasks - 1),
                _ => Taking::Done,
            };
        }
        while watch.items.front().is_some_and(|item| item.progress == Taking::Done) {
            let version = watch.items.pop_front().and_then(|item| item.version);
            watch.taken_in = version.or(watch.taken_in);
        }
    }
}
