//! Concurrency limits that neither a tenant nor one of its namespaces can use up.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// A limit on how much is done at the same time, for all tenants.
///
/// A member of a tenant, such as a namespace, may have a place as long as it and its tenant together hold fewer than twice as many
/// as are free. Alone it has half of the places, and all members of a tenant together have two thirds at most; two tenants leave
/// a ninth at least, and one that holds nothing gets a place as long as one is free. A place that is given back goes to the tenant that holds the fewest.
#[derive(Debug, Clone)]
pub struct Shares {
    most: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The tenants that hold places, or wait for one.
    tenants: BTreeMap<String, Tenant>,
}

#[derive(Debug, Default)]
struct Tenant {
    /// By all of its members.
    held: usize,
    members: BTreeMap<String, Member>,
}

#[derive(Debug, Default)]
struct Member {
    held: usize,
    /// In order.
    waiting: VecDeque<oneshot::Sender<Place>>,
}

/// A place that is given back on drop.
#[derive(Debug)]
pub struct Place {
    /// `None` if it was never counted.
    shares: Option<Shares>,
    tenant: String,
    member: String,
}

impl Shares {
    /// Creates a limit of which one member may use half: `of_one` places.
    pub fn new(of_one: usize) -> Self {
        let most = 2 * of_one;
        Self { most, state: Arc::new(Mutex::new(State { free: most, tenants: BTreeMap::new() })) }
    }

    /// Waits for a place.
    pub async fn acquire(&self, tenant: &str, member: &str) -> Place {
        let granted = {
            let mut state = self.state();
            if state.may_take(tenant, member) {
                state.count(tenant, member);
                return self.place(tenant, member);
            }
            let waiting = &mut state.member(tenant, member).waiting;
            if waiting.len().is_power_of_two() {
                waiting.retain(|one| !one.is_closed());
            }
            let (grant, granted) = oneshot::channel();
            waiting.push_back(grant);
            granted
        };
        match granted.await {
            Ok(place) => place,
            // A request is dropped only after its grant, and this limit not before its caller.
            Err(_) => pending().await,
        }
    }

    /// Returns a place, if the member may have one now.
    pub fn try_acquire(&self, tenant: &str, member: &str) -> Option<Place> {
        let mut state = self.state();
        if !state.may_take(tenant, member) {
            return None;
        }
        state.count(tenant, member);
        Some(self.place(tenant, member))
    }

    /// Returns how many places are held.
    pub fn held(&self) -> usize {
        self.most - self.state().free
    }

    fn give_back(&self, tenant: &str, member: &str) {
        let mut state = self.state();
        state.free += 1;
        if let Some(tenant) = state.tenants.get_mut(tenant) {
            tenant.held -= 1;
            if let Some(member) = tenant.members.get_mut(member) {
                member.held -= 1;
            }
        }
        while let Some((tenant, member)) = state.next() {
            let Some(grant) = state.member(&tenant, &member).waiting.pop_front() else { break };
            match grant.send(self.place(&tenant, &member)) {
                Ok(()) => state.count(&tenant, &member),
                // It waits no longer.
                Err(mut place) => place.shares = None,
            }
        }
        state.tenants.retain(|_, tenant| {
            tenant.members.retain(|_, member| member.held > 0 || !member.waiting.is_empty());
            !tenant.members.is_empty()
        });
    }

    fn place(&self, tenant: &str, member: &str) -> Place {
        Place { shares: Some(self.clone()), tenant: tenant.to_owned(), member: member.to_owned() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns whether a member may take a place now: others of it that wait come first.
    fn may_take(&self, tenant: &str, member: &str) -> bool {
        let tenant = self.tenants.get(tenant);
        let member = tenant.and_then(|tenant| tenant.members.get(member));
        member.is_none_or(|member| member.waiting.is_empty())
            && admits(self.free, tenant.map_or(0, |tenant| tenant.held), member.map_or(0, |member| member.held))
    }

    /// Counts a place that a member has taken.
    fn count(&mut self, tenant: &str, member: &str) {
        self.free -= 1;
        self.member(tenant, member).held += 1;
        if let Some(tenant) = self.tenants.get_mut(tenant) {
            tenant.held += 1;
        }
    }

    fn member(&mut self, tenant: &str, member: &str) -> &mut Member {
        self.tenants.entry(tenant.to_owned()).or_default().members.entry(member.to_owned()).or_default()
    }

    /// Returns who is granted the next place: of those that wait and may have one, the tenant that holds the fewest, and its member
    /// that does.
    fn next(&self) -> Option<(String, String)> {
        let all = self.tenants.iter().flat_map(|(name, tenant)| {
            tenant.members.iter().map(move |(of, member)| ((tenant.held, member.held), (name, of), member))
        });
        let may = all.filter(|((of_tenant, of_member), _, member)| {
            !member.waiting.is_empty() && admits(self.free, *of_tenant, *of_member)
        });
        may.min_by_key(|(held, ..)| *held).map(|(_, (tenant, member), _)| (tenant.clone(), member.clone()))
    }
}

/// Returns whether a member may take another place.
fn admits(free: usize, of_tenant: usize, of_member: usize) -> bool {
    of_tenant + of_member < 2 * free
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(shares) = self.shares.take() {
            shares.give_back(&self.tenant, &self.member);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// Takes all places that a member may have.
    fn take_all(shares: &Shares, tenant: &str, member: &str) -> Vec<Place> {
        std::iter::from_fn(|| shares.try_acquire(tenant, member)).collect()
    }

    #[tokio::test]
    async fn one_namespace_never_holds_all_places() {
        let shares = Shares::new(24);
        let a = take_all(&shares, "red", "a");
        assert_eq!((a.len(), shares.held()), (24, 24), "alone, it has half of them");
        assert!(shares.acquire("red", "a").now_or_never().is_none());
        assert!(!take_all(&shares, "red", "b").is_empty(), "another namespace of its tenant");
        assert!(!take_all(&shares, "blue", "c").is_empty());
    }

    /// As namespaces in which nothing ends.
    #[tokio::test]
    async fn two_tenants_of_three_namespaces_leave_places_to_others() {
        let shares = Shares::new(24);
        let mut held = Vec::new();
        for namespace in ["a", "b", "c"] {
            held.extend(take_all(&shares, "red", namespace));
        }
        assert!(held.len() <= 32, "{} of 48 places", held.len());
        for namespace in ["d", "e", "f"] {
            held.extend(take_all(&shares, "green", namespace));
        }
        let blue = take_all(&shares, "blue", "g");
        assert!(blue.len() >= 2, "{} places", blue.len());
        // However many there are.
        for number in 0..100 {
            held.extend(take_all(&shares, &format!("tenant {number}"), "h"));
        }
        drop(blue);
        assert!(shares.try_acquire("blue", "g").is_some());
    }

    #[tokio::test]
    async fn a_place_that_is_given_back_goes_to_the_tenant_that_holds_the_fewest() {
        let shares = Shares::new(2);
        let mut red = take_all(&shares, "red", "a");
        red.extend(take_all(&shares, "red", "b"));
        red.extend(take_all(&shares, "green", "c"));
        red.extend(take_all(&shares, "blue", "d"));
        assert_eq!(shares.held(), 4);
        let (mut first, mut abandoned, mut other) = (
            Box::pin(shares.acquire("red", "a")),
            Box::pin(shares.acquire("yellow", "e")),
            Box::pin(shares.acquire("yellow", "e")),
        );
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut abandoned).now_or_never().is_none());
        assert!((&mut other).now_or_never().is_none());
        drop(abandoned);
        red.pop();
        assert!((&mut first).now_or_never().is_none(), "it has waited for longer, and its tenant has places");
        let place = other.now_or_never().expect("a place");
        drop(first);
        drop((place, red));
        assert_eq!(shares.held(), 0);
        assert!(shares.state().tenants.is_empty(), "those that hold nothing are forgotten");
    }

    #[tokio::test]
    async fn a_place_whose_request_is_gone_is_free_again() {
        let shares = Shares::new(1);
        let held = take_all(&shares, "red", "a");
        let mut waiting = Box::pin(shares.acquire("red", "a"));
        assert!((&mut waiting).now_or_never().is_none());
        drop(held);
        assert_eq!(shares.held(), 1, "it is granted");
        drop(waiting);
        assert_eq!(shares.held(), 0);
    }
}
