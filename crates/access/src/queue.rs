//! Queues: which tenants share what, in which proportion.

use std::{collections::BTreeMap, time::Duration};

use sparkgate_submission::queues::Amounts;

use crate::name::is_subdomain;

/// How long a submission that is next waits before room is kept free for it, if the file doesn't say.
const RESERVE_AFTER: Duration = Duration::from_secs(60);

/// The queues of an access file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queues {
    pub(crate) all: BTreeMap<String, Queue>,
    /// What all queues may use together, as the file states it; resources that it doesn't have are unlimited, or learned.
    pub(crate) capacity: Amounts,
    /// What the file doesn't state is learned from the quotas of the tenants' namespaces.
    pub learns_capacity: bool,
    /// How long a submission that is next waits before room is kept free for it.
    pub reserve_after: Duration,
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            capacity: Amounts::default(),
            learns_capacity: false,
            reserve_after: RESERVE_AFTER,
        }
    }
}

impl Queues {
    /// Returns whether the file has no queue: submissions are launched as they come.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns what all queues may use together; resources that it doesn't have are unlimited. `learned` is what quotas permit, if the
    /// file says that it counts. Amounts that the file states come first.
    pub fn capacity_with(&self, learned: &Amounts) -> Amounts {
        let learned = learned.iter().filter(|_| self.learns_capacity);
        learned.chain(self.capacity.iter()).map(|(resource, amount)| (resource.clone(), *amount)).collect()
    }

    /// Returns the sum of all weights.
    pub fn weights(&self) -> u32 {
        self.all.values().map(|queue| queue.weight).sum()
    }

    /// Returns all queues, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.all.values()
    }

    /// Returns the queue with this name.
    pub fn get(&self, name: &str) -> Option<&Queue> {
        self.all.get(name)
    }

    /// Returns the queues that a tenant may use, by name.
    pub fn for_tenant(&self, tenant: &str) -> impl Iterator<Item = &Queue> {
        self.all.values().filter(move |queue| queue.admits(tenant))
    }
}

/// A queue: submissions of some tenants, which run when it has room for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    pub name: String,
    /// The tenants that may use it; `None` means all.
    pub tenants: Option<Vec<String>>,
    /// Its share of the capacity in proportion to that of the other queues. What it doesn't use is lent.
    pub weight: u32,
    /// What its submissions may use together; resources that it doesn't have are unlimited.
    pub caps: Amounts,
    /// The priority of submissions that ask for none.
    pub default_priority: i32,
    /// The highest priority that a submission may ask for.
    pub max_priority: i32,
    /// How many of its submissions may wait.
    pub max_queued: Option<u64>,
    /// How long a submission may wait.
    pub queue_timeout: Option<Duration>,
    /// What an application with dynamic allocation counts.
    pub dynamic_allocation: DynamicAllocation,
    /// The queue of Kueue that admits its submissions after it.
    pub kueue: Option<KueueQueue>,
}

impl Queue {
    /// Returns whether a tenant may use it.
    pub fn admits(&self, tenant: &str) -> bool {
        self.tenants.as_ref().is_none_or(|tenants| tenants.iter().any(|name| name == tenant))
    }
}

/// A queue of Kueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KueueQueue {
    /// A `LocalQueue` of the namespace of drivers.
    pub local_queue: String,
    /// A `WorkloadPriorityClass`. By default Kueue's own default holds.
    pub priority_class: Option<String>,
}

impl KueueQueue {
    /// Reads the name of a `LocalQueue`, with that of a `WorkloadPriorityClass` after a colon if there is one; `None` if one of them is no
    /// name of an object.
    pub fn parse(text: &str) -> Option<Self> {
        let (queue, class) = text.split_once(':').map_or((text, None), |(queue, class)| (queue, Some(class)));
        let are_names = is_subdomain(queue) && class.is_none_or(is_subdomain);
        are_names.then(|| Self { local_queue: queue.to_owned(), priority_class: class.map(str::to_owned) })
    }
}

/// What an application counts whose number of executors changes while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DynamicAllocation {
    /// As many executors as it may have: caps are never exceeded.
    #[default]
    Maximum,
    /// As many executors as it begins with, and as it has from then on: caps are compared when submissions are admitted, and applications
    /// may grow beyond them.
    Running,
}
