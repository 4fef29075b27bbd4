use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};

use super::*;

const ALWAYS: Duration = Duration::from_secs(3600);

fn cores(count: u64) -> Amounts {
    Amounts::default().with(Resource::Cores, count * 1000)
}

fn waiting(number: i64, count: u64) -> Candidate {
    Candidate { number, cost: cores(count), waited: Duration::ZERO }
}

fn tenant(running: u64, waiting: Vec<Candidate>) -> Tenant {
    Tenant { running: cores(running), waiting, ..Tenant::default() }
}

fn queue(weight: u32, tenants: Vec<(&str, Tenant)>) -> Queue {
    let tenants = tenants.into_iter().map(|(name, tenant)| (name.to_owned(), tenant)).collect();
    Queue { weight, tenants, ..Queue::default() }
}

fn snapshot(capacity: u64, queues: Vec<(&str, Queue)>) -> Snapshot {
    let queues = queues.into_iter().map(|(name, queue)| (name.to_owned(), queue)).collect();
    Snapshot { capacity: cores(capacity), reserve_after: ALWAYS, queues }
}

fn several(from: i64, count: i64) -> Vec<Candidate> {
    (from..from + count).map(|number| waiting(number, 1)).collect()
}

#[test]
fn queues_share_by_weight() {
    let of = |name, weight, from| (name, queue(weight, vec![("t", tenant(0, several(from, 100)))]));
    let round = decide(&snapshot(40, vec![of("a", 3, 0), of("b", 1, 1000)]), 1000);
    let of_a = round.admitted.iter().filter(|number| **number < 1000).count();
    assert_eq!((of_a, round.admitted.len()), (30, 40));
}

#[test]
fn what_a_queue_does_not_use_is_lent_and_comes_back_as_jobs_end() {
    let lent = queue(1, vec![("t", tenant(40, several(0, 10)))]);
    let back = |running, free| {
        let own = queue(1, vec![("u", tenant(running, several(100, 10)))]);
        let lent =
            Queue { tenants: [("t".to_owned(), tenant(40 - running - free, several(0, 10)))].into(), ..lent.clone() };
        decide(&snapshot(40, vec![("a", lent), ("b", own)]), 100).admitted
    };
    assert_eq!(back(0, 3), [100, 101, 102]);
    assert_eq!(back(18, 4), [0, 100, 1, 101], "both have 18 of 40");
}

#[test]
fn tenants_of_a_queue_take_turns_whatever_the_backlog_of_one_is() {
    let tenants = vec![("loud", tenant(5, several(0, 100))), ("quiet", tenant(0, several(500, 2)))];
    let round = decide(&snapshot(8, vec![("a", queue(1, tenants))]), 100);
    assert_eq!(round.admitted, [500, 501, 0]);
    let tenants = vec![("loud", tenant(0, several(0, 100))), ("quiet", tenant(0, several(500, 3)))];
    let round = decide(&snapshot(6, vec![("a", queue(1, tenants))]), 100);
    assert_eq!(round.admitted, [0, 500, 1, 501, 2, 502]);
}

/// Turns decide only among equals.
#[test]
fn a_tenant_whose_submissions_are_larger_is_admitted_less_often() {
    let large = (0..10).map(|number| waiting(number, 3)).collect();
    let tenants = vec![("large", tenant(0, large)), ("small", tenant(0, several(500, 10)))];
    let round = decide(&snapshot(12, vec![("a", queue(1, tenants))]), 100);
    assert_eq!(round.admitted, [0, 500, 501, 502, 1, 503, 504, 505]);
}

/// There are fewer places than tenants, so most of them use nothing.
#[test]
fn among_equals_it_is_the_turn_of_the_one_whose_last_admission_is_longest_ago() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let with = |since_admission, from, count| Tenant { since_admission, ..tenant(0, several(from, count)) };
    let of = |tenants| decide(&snapshot(1, vec![("a", queue(1, tenants))]), 100).admitted;
    assert_eq!(of(vec![("loud", with(seconds(1), 0, 100)), ("quiet", with(seconds(60), 500, 1))]), [500]);
    assert_eq!(of(vec![("loud", with(seconds(1), 0, 100)), ("new", with(None, 500, 1))]), [500]);
    assert_eq!(of(vec![("loud", with(seconds(60), 0, 100)), ("quiet", with(seconds(60), 500, 1))]), [0]);
    // The turn of a queue depends on its weight, too.
    let between = |since| {
        let light = queue(1, vec![("t", with(seconds(50), 0, 5))]);
        decide(&snapshot(1, vec![("heavy", queue(3, vec![("u", with(seconds(since), 500, 1))])), ("light", light)]), 1)
            .admitted
    };
    assert_eq!((between(16), between(17)), (vec![0], vec![500]));
}

#[test]
fn a_queue_that_uses_few_cores_and_much_of_another_resource_has_a_large_share() {
    let gpu = Resource::Extended("nvidia.com/gpu".to_owned());
    let greedy = Tenant { running: cores(1).with(gpu.clone(), 4), ..tenant(0, several(0, 5)) };
    let plain = tenant(20, several(100, 5));
    let mut snapshot = snapshot(24, vec![("a", queue(1, vec![("t", greedy)])), ("b", queue(1, vec![("u", plain)]))]);
    snapshot.capacity.set(gpu, 4);
    assert_eq!(decide(&snapshot, 100).admitted, [100, 101, 102]);
    // Six of eight GPUs, and no core, are more than half of the cores and an eighth of the GPUs.
    let gpus = |count| Amounts::default().with(Resource::Extended("nvidia.com/gpu".to_owned()), count);
    let mut both = cores(12);
    both.add(&gpus(1));
    for (name, running) in [("a", gpus(6)), ("b", both)] {
        let queue = snapshot.queues.get_mut(name).unwrap();
        queue.tenants.values_mut().for_each(|tenant| tenant.running = running.clone());
    }
    snapshot.capacity = cores(24);
    snapshot.capacity.add(&gpus(8));
    assert_eq!(decide(&snapshot, 2).admitted, [100, 101]);
}

#[test]
fn a_priority_overtakes_and_equals_are_in_the_order_of_acceptance() {
    let mut ranks =
        [(1, 0), (2, 5), (3, 5), (4, 0), (5, 1000)].map(|(number, priority)| (rank(number, priority), number));
    ranks.sort_unstable();
    assert_eq!(ranks.map(|(_, number)| number), [5, 2, 3, 1, 4]);
    assert!(rank(1_000_002, 1) > rank(1, 0), "nothing is overtaken without an end");
}

#[test]
fn the_reason_of_each_next_submission_is_known() {
    let mut full = queue(1, vec![("t", tenant(40, several(0, 3)))]);
    full.caps = cores(40);
    let paused = Queue { is_paused: true, ..queue(1, vec![("u", tenant(0, several(10, 3)))]) };
    let large = queue(1, vec![("v", tenant(0, vec![waiting(20, 200), waiting(21, 70)]))]);
    let round = decide(&snapshot(100, vec![("full", full), ("paused", paused), ("large", large)]), 100);
    assert!(round.admitted.is_empty());
    let words: Vec<_> = round.waiting.iter().map(|(number, reason)| (*number, reason.sentence("q"))).collect();
    assert_eq!(
        words,
        [
            (0, "the cap of queue q on cores has no room for 1: 40 of 40 are used".to_owned()),
            (10, "queue q is paused".to_owned()),
            (
                20,
                "it needs 200 cores, and queue q may use 100 since its cap was lowered: kill it, or ask the operator to raise the cap"
                    .to_owned()
            ),
            (21, "the capacity of all queues has no room for 70 cores: 40 of 100 are used".to_owned()),
        ]
    );
}

#[test]
fn a_cap_that_was_lowered_below_what_runs_admits_nothing() {
    let mut lowered = queue(1, vec![("t", tenant(44, several(0, 3)))]);
    lowered.caps = cores(40);
    let round = decide(&snapshot(100, vec![("a", lowered)]), 100);
    let reason = WaitReason::Cap { resource: Resource::Cores, used: 44_000, cap: 40_000, cost: 1000 };
    assert_eq!((round.admitted, round.waiting), (vec![], [(0, reason)].into()));
}

#[test]
fn small_submissions_overtake_a_large_one_until_room_is_kept_free_for_it() {
    let large = |waited| Candidate { waited, ..waiting(0, 8) };
    let of = |waited| {
        let small = queue(1, vec![("u", tenant(5, several(10, 5)))]);
        decide(&snapshot(10, vec![("a", queue(1, vec![("t", tenant(0, vec![large(waited)]))])), ("b", small)]), 100)
    };
    assert_eq!(of(Duration::ZERO).admitted.len(), 5);
    let round = of(ALWAYS);
    assert!(round.admitted.is_empty());
    assert_eq!(round.waiting[&10], WaitReason::Reserved { number: 0 });
}

#[test]
fn a_resource_for_which_one_waits_does_not_keep_others_from_using_the_rest() {
    let gpu = Resource::Extended("nvidia.com/gpu".to_owned());
    let waits = |number| Candidate { waited: ALWAYS, cost: cores(2).with(gpu.clone(), 1), number };
    let gpus = ["t", "u", "v"].into_iter().zip(0..).map(|(name, number)| (name, tenant(0, vec![waits(number)])));
    let holder = Tenant { running: Amounts::default().with(gpu.clone(), 1), ..Tenant::default() };
    let cpus = queue(1, vec![("x", tenant(0, several(10, 20))), ("w", holder)]);
    let mut snapshot = snapshot(10, vec![("gpus", queue(1, gpus.collect())), ("cpus", cpus)]);
    snapshot.capacity.set(gpu, 1);
    assert_eq!(decide(&snapshot, 100).admitted.len(), 8, "two cores are kept free for one of three");
}

#[test]
fn a_round_says_whether_it_decided_about_all() {
    let more = |has_more| Tenant { has_more, ..tenant(0, several(0, 3)) };
    let round = |has_more, limit| decide(&snapshot(100, vec![("a", queue(1, vec![("t", more(has_more))]))]), limit);
    assert!(!round(false, 100).is_partial);
    assert!(round(true, 100).is_partial);
    assert!(round(false, 2).is_partial);
    assert_eq!(round(false, 2).admitted, [0, 1]);
}

fn amounts() -> impl Strategy<Value = Amounts> {
    let each = (proptest::option::of(1_u64..20), proptest::option::of(1_u64..20), proptest::option::of(0_u64..4));
    each.prop_map(|(cores, memory, gpus)| {
        let gpu = Resource::Extended("gpu".to_owned());
        let each = [(Resource::Cores, cores), (Resource::Memory, memory), (gpu, gpus)];
        each.into_iter().filter_map(|(resource, amount)| Some((resource, amount?))).collect()
    })
}

prop_compose! {
    fn any_tenant()(running in amounts(), costs in vec((amounts(), any::<bool>()), 0..6), has_more: bool) -> Tenant {
        let waiting = costs.into_iter().map(|(cost, is_old)| {
            Candidate { number: 0, cost, waited: if is_old { ALWAYS } else { Duration::ZERO } }
        });
        Tenant { running, waiting: waiting.collect(), has_more, ..Tenant::default() }
    }
}

prop_compose! {
    fn any_queue()(weight in 1_u32..5, caps in amounts(), paused in 0..5, tenants in vec(any_tenant(), 0..4)) -> Queue {
        let tenants = tenants.into_iter().enumerate().map(|(at, tenant)| (format!("t{at}"), tenant)).collect();
        Queue { weight, caps, is_paused: paused == 0, tenants }
    }
}

prop_compose! {
    fn any_snapshot()(capacity in amounts(), queues in vec(any_queue(), 0..5), is_patient: bool) -> Snapshot {
        let reserve_after = if is_patient { Duration::MAX } else { ALWAYS };
        let queues = queues.into_iter().enumerate().map(|(at, queue)| (format!("q{at}"), queue)).collect();
        let mut snapshot = Snapshot { capacity, reserve_after, queues };
        let tenants = snapshot.queues.values_mut().flat_map(|queue| queue.tenants.values_mut());
        tenants.flat_map(|tenant| &mut tenant.waiting).zip(1..).for_each(|(waiting, number)| waiting.number = number);
        snapshot
    }
}

/// Returns what the admitted submissions of some tenants cost.
fn admitted<'a>(tenants: impl Iterator<Item = &'a Tenant>, round: &Round) -> Amounts {
    let numbers: BTreeSet<_> = round.admitted.iter().collect();
    let mut sum = Amounts::default();
    let waiting = tenants.flat_map(|tenant| &tenant.waiting);
    waiting.filter(|waiting| numbers.contains(&waiting.number)).for_each(|waiting| sum.add(&waiting.cost));
    sum
}

fn running<'a>(tenants: impl Iterator<Item = &'a Tenant>) -> Amounts {
    tenants.fold(Amounts::default(), |mut sum, tenant| {
        sum.add(&tenant.running);
        sum
    })
}

/// Checks that nothing was admitted beyond caps, and that more isn't used of what is beyond them already.
fn within(caps: &Amounts, running: &Amounts, admitted: &Amounts) -> Result<(), TestCaseError> {
    for (resource, cap) in caps.iter() {
        let more = admitted.amount(resource);
        prop_assert!(more == 0 || running.amount(resource) + more <= *cap, "{resource} beyond {cap}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_cap_is_exceeded_and_each_tenant_keeps_its_order(snapshot in any_snapshot(), limit in 0_usize..20) {
        let round = decide(&snapshot, limit);
        prop_assert!(round.admitted.len() <= limit);
        for queue in snapshot.queues.values() {
            let of_queue = admitted(queue.tenants.values(), &round);
            prop_assert!(!queue.is_paused || of_queue.is_empty());
            within(&queue.caps, &running(queue.tenants.values()), &of_queue)?;
            for tenant in queue.tenants.values() {
                // Only those that never fit are passed over.
                let is_admitted = |waiting: &&Candidate| round.admitted.contains(&waiting.number);
                let never = |waiting: &&Candidate| {
                    matches!(round.waiting.get(&waiting.number), Some(WaitReason::NeverFits { .. }))
                };
                let rest = tenant.waiting.iter().filter(|waiting| !never(waiting)).skip_while(is_admitted);
                prop_assert!(!rest.into_iter().any(|waiting| is_admitted(&waiting)));
            }
        }
        let all = || snapshot.queues.values().flat_map(|queue| queue.tenants.values());
        within(&snapshot.capacity, &running(all()), &admitted(all(), &round))?;
    }

    #[test]
    fn nothing_waits_without_a_reason(snapshot in any_snapshot()) {
        let round = decide(&snapshot, usize::MAX);
        let all = || snapshot.queues.values().flat_map(|queue| queue.tenants.values());
        let mut used = running(all());
        used.add(&admitted(all(), &round));
        for queue in snapshot.queues.values() {
            let mut of_queue = running(queue.tenants.values());
            of_queue.add(&admitted(queue.tenants.values(), &round));
            for tenant in queue.tenants.values() {
                let waits = |waiting: &&Candidate| {
                    !round.admitted.contains(&waiting.number)
                        && !matches!(round.waiting.get(&waiting.number), Some(WaitReason::NeverFits { .. }))
                };
                let Some(next) = tenant.waiting.iter().find(waits) else { continue };
                let reason = round.waiting.get(&next.number);
                prop_assert!(reason.is_some(), "{} waits without a reason", next.number);
                let lacks = |caps: &Amounts, used: &Amounts| caps.less(used).exceeded_by(&next.cost).is_some();
                let has_room = !lacks(&queue.caps, &of_queue) && !lacks(&snapshot.capacity, &used);
                match reason {
                    Some(WaitReason::Paused) => prop_assert!(queue.is_paused),
                    Some(WaitReason::Reserved { .. }) => prop_assert!(snapshot.reserve_after < Duration::MAX),
                    _ => prop_assert!(!has_room, "{} has room: {reason:?}", next.number),
                }
            }
        }
    }
}
