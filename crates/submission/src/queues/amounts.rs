//! Amounts of resources.

use std::{
    collections::{BTreeMap, btree_map},
    fmt,
};

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    Submissions,
    /// Drivers and executors.
    Pods,
    /// In thousandths of a core.
    Cores,
    /// In bytes.
    Memory,
    /// An extended resource of Kubernetes, by its name, such as `nvidia.com/gpu`.
    Extended(String),
}

impl Resource {
    /// Returns the resource with this name. It is the text of the resource.
    fn named(name: &str) -> Self {
        [Self::Submissions, Self::Pods, Self::Cores, Self::Memory]
            .into_iter()
            .find(|resource| resource.to_string() == name)
            .unwrap_or_else(|| Self::Extended(name.to_owned()))
    }

    /// Writes an amount of the resource as people write it: `1.5` cores, `64Gi` of memory.
    pub fn written(&self, amount: u64) -> String {
        const UNITS: [(&str, u64); 4] = [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
        match self {
            Self::Cores if amount.is_multiple_of(1000) => (amount / 1000).to_string(),
            Self::Cores => format!("{}.{:03}", amount / 1000, amount % 1000).trim_end_matches('0').to_owned(),
            Self::Memory => {
                let fits = |(_, unit): &&(&str, u64)| amount > 0 && amount.is_multiple_of(*unit);
                UNITS
                    .iter()
                    .find(fits)
                    .map_or_else(|| amount.to_string(), |(name, unit)| format!("{}{name}", amount / unit))
            }
            Self::Submissions | Self::Pods | Self::Extended(_) => amount.to_string(),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Submissions => "submissions",
            Self::Pods => "pods",
            Self::Cores => "cores",
            Self::Memory => "memory",
            Self::Extended(name) => name,
        })
    }
}

/// An amount of each resource. As a cost or a sum, a resource that it doesn't have is zero; as a cap, it is unlimited. Sums that don't fit
/// saturate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<Resource, u64>);

impl Amounts {
    /// Returns these amounts with another one.
    #[must_use]
    pub fn with(mut self, resource: Resource, amount: u64) -> Self {
        self.set(resource, amount);
        self
    }

    pub fn set(&mut self, resource: Resource, amount: u64) {
        self.0.insert(resource, amount);
    }

    /// Returns the amount of a resource, if there is one.
    pub fn get(&self, resource: &Resource) -> Option<u64> {
        self.0.get(resource).copied()
    }

    /// Returns the amount of a resource as a cost or a sum.
    pub fn amount(&self, resource: &Resource) -> u64 {
        self.get(resource).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the resources and their amounts.
    pub fn iter(&self) -> btree_map::Iter<'_, Resource, u64> {
        self.0.iter()
    }

    /// Adds other amounts.
    pub fn add(&mut self, other: &Self) {
        for (resource, amount) in &other.0 {
            match self.0.get_mut(resource) {
                Some(own) => *own = own.saturating_add(*amount),
                None => drop(self.0.insert(resource.clone(), *amount)),
            }
        }
    }

    /// Returns what is left of these caps after a use, at least zero.
    #[must_use]
    pub fn less(&self, used: &Self) -> Self {
        let left = |(resource, cap): (&Resource, &u64)| (resource.clone(), cap.saturating_sub(used.amount(resource)));
        Self(self.0.iter().map(left).collect())
    }

    /// Returns the part of these amounts that belongs to one weight of several.
    #[must_use]
    pub fn part(&self, weight: u32, weights: u32) -> Self {
        let part = |amount: u64| u128::from(amount) * u128::from(weight) / u128::from(weights.max(1));
        let part = |(resource, amount): (&Resource, &u64)| {
            (resource.clone(), u64::try_from(part(*amount)).unwrap_or(u64::MAX))
        };
        self.0.iter().map(part).collect()
    }

    /// Returns what these amounts are more than others, for the resources that these others have.
    #[must_use]
    pub fn beyond(&self, others: &Self) -> Self {
        let more = |(resource, other): (&Resource, &u64)| {
            let more = self.amount(resource).saturating_sub(*other);
            (more > 0).then(|| (resource.clone(), more))
        };
        others.0.iter().filter_map(more).collect()
    }

    /// Returns the amounts by the names of the resources.
    pub fn to_map(&self) -> BTreeMap<String, u64> {
        self.0.iter().map(|(resource, amount)| (resource.to_string(), *amount)).collect()
    }

    /// Does the opposite.
    pub fn from_map(map: &BTreeMap<String, u64>) -> Self {
        map.iter().map(|(name, amount)| (Resource::named(name), *amount)).collect()
    }

    /// Takes a use from what is left of caps, at least down to zero.
    pub(super) fn take(&mut self, used: &Self) {
        self.0.iter_mut().for_each(|(resource, left)| *left = left.saturating_sub(used.amount(resource)));
    }

    /// Returns the first resource of which a cost is more than these caps, with the cap and the cost.
    pub fn exceeded_by(&self, cost: &Self) -> Option<(&Resource, u64, u64)> {
        let each = self.0.iter().map(|(resource, cap)| (resource, *cap, cost.amount(resource)));
        each.into_iter().find(|(_, cap, cost)| cost > cap)
    }
}

impl FromIterator<(Resource, u64)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (Resource, u64)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}
