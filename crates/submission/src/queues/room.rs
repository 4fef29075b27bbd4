//! Room below caps during a decision.

use super::{
    Candidate,
    amounts::{Amounts, Resource},
};

/// What caps leave, and what of it is kept free.
pub(super) struct Room<'a> {
    caps: &'a Amounts,
    used: Amounts,
    /// What is left, less what is kept free.
    free: Amounts,
    /// For which submissions room is kept free: one for each resource that lacks room.
    reserved: Vec<(Resource, &'a Candidate)>,
}

/// Why there is no room.
pub(super) enum NoRoom {
    /// Of this resource, so much is used of so much.
    Full { resource: Resource, used: u64, cap: u64 },
    /// It is kept free for the submission with this number.
    Reserved(i64),
}

impl<'a> Room<'a> {
    pub(super) fn new(caps: &'a Amounts, used: Amounts) -> Self {
        Self { free: caps.less(&used), caps, used, reserved: Vec::new() }
    }

    pub(super) fn used(&self) -> &Amounts {
        &self.used
    }

    /// Returns a cap that is less than the cost, with the cost.
    pub(super) fn never_fits(&self, cost: &Amounts) -> Option<(Resource, u64, u64)> {
        self.caps.exceeded_by(cost).map(|(resource, cap, cost)| (resource.clone(), cap, cost))
    }

    /// Returns why there is no room for a submission, if there is none.
    pub(super) fn lacks(&self, cost: &Amounts) -> Option<NoRoom> {
        let (resource, ..) = self.free.exceeded_by(cost)?;
        if let Some((resource, ..)) = self.caps.less(&self.used).exceeded_by(cost) {
            let (used, cap) = (self.used.amount(resource), self.caps.amount(resource));
            return Some(NoRoom::Full { resource: resource.clone(), used, cap });
        }
        let by = self.reserved.iter().find(|(_, by)| by.cost.amount(resource) > 0);
        by.map(|(_, by)| NoRoom::Reserved(by.number))
    }

    pub(super) fn take(&mut self, cost: &Amounts) {
        self.used.add(cost);
        self.free.take(cost);
    }

    /// Keeps room free for a submission, unless some is kept already for another one that lacks the same resource: what both would need
    /// of other resources would lie idle.
    pub(super) fn reserve(&mut self, candidate: &'a Candidate, lacking: &Resource) {
        if self.reserved.iter().all(|(resource, _)| resource != lacking) {
            self.free.take(&candidate.cost);
            self.reserved.push((lacking.clone(), candidate));
        }
    }
}
