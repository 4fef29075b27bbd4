//! The size of a pod: the resources of its containers together.

use std::collections::BTreeMap;

use sparkgate_spark::Quantity;

use crate::node::Node;

/// The lists of containers of a pod.
pub(crate) const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Resources with limits of their own.
pub(crate) const COMMON: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Which amount of a container counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    /// What it requests or may use, whichever is more.
    Most,
    /// What its node reserves: its request, or its limit if it requests nothing.
    Reserved,
}

/// The resources of a pod, by name.
#[derive(Debug, Default)]
pub(crate) struct Size {
    pub(crate) amounts: BTreeMap<String, Quantity>,
    /// Resources that some container doesn't state, so that it may use any amount.
    open: Vec<&'static str>,
}

impl Size {
    /// Returns what the containers of a pod request or may use.
    pub(crate) fn most(spec: &Node<'_>) -> Self {
        Self::of(spec, Amount::Most)
    }

    /// Returns what nodes reserve for a pod.
    pub(crate) fn reserved(spec: &Node<'_>) -> Self {
        let mut size = Self::of(spec, Amount::Reserved);
        for (name, amount) in spec.field("overhead").entries() {
            let own = size.amounts.entry(name.to_owned()).or_default();
            *own = own.plus(Quantity::from_value(amount.value).unwrap_or(Quantity::MAX));
        }
        size
    }

    fn of(spec: &Node<'_>, which: Amount) -> Self {
        let mut running = Self::default();
        let mut starting = Self::default();
        for list in CONTAINERS {
            for container in spec.field(list).items() {
                let own = Self::from_container(&container.field("resources"), which);
                running.open.extend(&own.open);
                // Init containers run one after the other, except sidecars, which stay.
                match list == "initContainers" && container.text_of("restartPolicy") != "Always" {
                    true => starting.raise(own),
                    false => running.add(own),
                }
            }
        }
        // A sidecar may run beside any init container.
        starting.amounts.iter_mut().for_each(|(name, amount)| {
            let beside = sidecars(spec, name, which);
            *amount = amount.plus(beside);
        });
        running.raise(starting);
        let pod = Self::from_container(&spec.field("resources"), which);
        running.open.retain(|name| pod.open.contains(name));
        running.raise(pod);
        running
    }

    fn from_container(resources: &Node<'_>, which: Amount) -> Self {
        let mut size = Self::default();
        // Limits last: they count only for what isn't requested if it is reserved.
        for list in ["requests", "limits"] {
            for (name, amount) in resources.field(list).entries() {
                // What can't be read is reported by `judge_amounts`, and exceeds each limit here.
                let amount = Quantity::from_value(amount.value).unwrap_or(Quantity::MAX);
                let own = size.amounts.get(name).copied();
                if let (Some(own), true) = (own, which == Amount::Most || list == "requests") {
                    size.amounts.insert(name.to_owned(), amount.max(own));
                } else if own.is_none() {
                    size.amounts.insert(name.to_owned(), amount);
                }
            }
        }
        size.open = COMMON.into_iter().filter(|name| !size.amounts.contains_key(*name)).collect();
        size
    }

    fn add(&mut self, other: Self) {
        for (name, amount) in other.amounts {
            let own = self.amounts.entry(name).or_default();
            *own = own.plus(amount);
        }
    }

    fn raise(&mut self, other: Self) {
        for (name, amount) in other.amounts {
            let own = self.amounts.entry(name).or_default();
            *own = amount.max(*own);
        }
    }

    /// Returns the amount of a resource, or `None` if a container may use any.
    pub(crate) fn amount(&self, name: &str) -> Option<Quantity> {
        (!self.open.contains(&name)).then(|| self.amounts.get(name).copied().unwrap_or_default())
    }
}

fn sidecars(spec: &Node<'_>, resource: &str, which: Amount) -> Quantity {
    let mut sum = Quantity::ZERO;
    for container in spec.field("initContainers").items() {
        if container.text_of("restartPolicy") == "Always" {
            let size = Size::from_container(&container.field("resources"), which);
            sum = sum.plus(size.amounts.get(resource).copied().unwrap_or_default());
        }
    }
    sum
}
