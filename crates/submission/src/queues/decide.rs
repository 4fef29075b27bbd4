//! The decision.

use std::time::Duration;

use super::{
    Candidate, Queue, Round, Snapshot,
    amounts::Amounts,
    reason::WaitReason,
    room::{NoRoom, Room},
    share::{Share, whole, whole_of_queue},
};

/// A tenant whose next submission isn't decided yet.
struct Open<'a> {
    waiting: &'a [Candidate],
    has_more: bool,
    running: Amounts,
    share: Share,
    turn: Turn,
}

/// A queue during a decision.
struct Line<'a> {
    queue: &'a Queue,
    room: Room<'a>,
    share: Share,
    turn: Turn,
    tenants: Vec<Open<'a>>,
}

/// Decides which waiting submissions are admitted, up to `limit`, and why the others wait.
///
/// The next submission of the queue and tenant with the smallest share is admitted if the caps of its queue and the capacity have room for
/// it. If they haven't, others may overtake it, so that the room doesn't lie idle. Once it has waited for [`Snapshot::reserve_after`], room
/// is kept free for it: others may only use what it doesn't need, until enough has ended. A submission that is larger than a cap, because
/// the cap was lowered, is passed over.
///
/// The result depends on the snapshot alone. Submissions of a tenant are admitted in their order. No cap is exceeded; if more runs already
/// than a lowered cap permits, nothing is admitted that uses the resource.
pub fn decide(snapshot: &Snapshot, limit: usize) -> Round {
    let whole = whole(snapshot);
    let mut round = Round::default();
    let (mut lines, used) = open(snapshot, &whole, &mut round);
    let mut capacity = Room::new(&snapshot.capacity, used);
    while let Some((line, at)) = next(&mut lines) {
        let open = &mut line.tenants[at];
        let [candidate, rest @ ..] = open.waiting else {
            round.is_partial |= open.has_more;
            line.tenants.swap_remove(at);
            continue;
        };
        let cost = &candidate.cost;
        if let Some((resource, most, cost)) = line.room.never_fits(cost).or_else(|| capacity.never_fits(cost)) {
            round.waiting.insert(candidate.number, WaitReason::NeverFits { resource, most, cost });
            open.waiting = rest;
            continue;
        }
        let lacks_in_queue = line.room.lacks(cost);
        let is_of_queue = lacks_in_queue.is_some();
        if let Some(lacks) = lacks_in_queue.or_else(|| capacity.lacks(cost)) {
            line.tenants.swap_remove(at);
            if let NoRoom::Full { resource, .. } = &lacks
                && candidate.waited >= snapshot.reserve_after
            {
                line.room.reserve(candidate, resource);
                if !is_of_queue {
                    capacity.reserve(candidate, resource);
                }
            }
            round.waiting.insert(candidate.number, reason(lacks, is_of_queue, cost));
            continue;
        }
        if round.admitted.len() >= limit {
            round.is_partial = true;
            break;
        }
        round.admitted.push(candidate.number);
        open.waiting = rest;
        open.running.add(cost);
        open.share = Share::dominant(&open.running, whole_of_queue(line.queue, &whole), 1);
        line.room.take(cost);
        line.share = Share::dominant(line.room.used(), &whole, line.queue.weight);
        (open.turn, line.turn) = (Turn::admitted(&round), Turn::admitted(&round));
        capacity.take(cost);
    }
    round
}

/// Returns the queues that may admit, and what all queues use together.
fn open<'a>(snapshot: &'a Snapshot, whole: &Amounts, round: &mut Round) -> (Vec<Line<'a>>, Amounts) {
    let mut all_used = Amounts::default();
    let mut lines = Vec::new();
    for queue in snapshot.queues.values() {
        let mut used = Amounts::default();
        queue.tenants.values().for_each(|tenant| used.add(&tenant.running));
        all_used.add(&used);
        if queue.is_paused {
            let next = queue.tenants.values().filter_map(|tenant| tenant.waiting.first());
            round.waiting.extend(next.map(|next| (next.number, WaitReason::Paused)));
            continue;
        }
        let open = queue.tenants.values().filter(|tenant| !tenant.waiting.is_empty()).map(|tenant| Open {
            waiting: &tenant.waiting,
            has_more: tenant.has_more,
            running: tenant.running.clone(),
            turn: Turn::since(tenant.since_admission, 1),
            share: Share::dominant(&tenant.running, whole_of_queue(queue, whole), 1),
        });
        let (tenants, share) = (open.collect(), Share::dominant(&used, whole, queue.weight));
        let last = queue.tenants.values().filter_map(|tenant| tenant.since_admission).min();
        let turn = Turn::since(last, queue.weight);
        lines.push(Line { queue, room: Room::new(&queue.caps, used), share, turn, tenants });
    }
    (lines, all_used)
}

/// Whose turn it is among equals: the lowest is next. With fewer places than tenants, most of them use nothing, and take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(i128);

impl Turn {
    /// Returns the turn of a queue or a tenant whose last admission was so long ago. A queue with twice the weight gets it after half the
    /// time.
    fn since(last: Option<Duration>, weight: u32) -> Self {
        let waited = last.map_or(u128::MAX, |last| last.as_micros() * u128::from(weight));
        Self(-i128::try_from(waited).unwrap_or(i128::MAX))
    }

    /// Returns the turn after the last admission of a round.
    fn admitted(round: &Round) -> Self {
        Self(round.admitted.len() as i128)
    }
}

/// Returns the queue with the smallest share that has an open tenant, and which of its tenants is next. Among equals, it is the one whose
/// last admission is longest ago, and then the one whose next submission was accepted first.
fn next<'a, 'b>(lines: &'b mut [Line<'a>]) -> Option<(&'b mut Line<'a>, usize)> {
    // A tenant without another submission is closed at once.
    let number = |open: &Open<'_>| open.waiting.first().map(|next| next.number);
    let open = lines.iter_mut().filter_map(|line| {
        let keys = line.tenants.iter().enumerate().map(|(at, open)| (open.share, open.turn, number(open), at));
        let (_, _, number, at) = keys.min()?;
        Some(((line.share, line.turn, number), line, at))
    });
    open.min_by_key(|(key, ..)| *key).map(|(_, line, at)| (line, at))
}

fn reason(lacks: NoRoom, is_of_queue: bool, cost: &Amounts) -> WaitReason {
    match lacks {
        NoRoom::Reserved(number) => WaitReason::Reserved { number },
        NoRoom::Full { resource, used, cap } => {
            let cost = cost.amount(&resource);
            match is_of_queue {
                true => WaitReason::Cap { resource, used, cap, cost },
                false => WaitReason::Capacity { resource, used, capacity: cap, cost },
            }
        }
    }
}
