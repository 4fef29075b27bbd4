//! What an application reserves, before any of its pods exists.

use std::collections::BTreeMap;

use crate::{
    executor::{self, ExecutorPod, SparkRelease, count, initial_count},
    judged::Judged,
    node::{Node, Root},
    pod_size::Size,
};
use sparkgate_spark::Quantity;

/// What nodes reserve for a pod, by the names of Kubernetes' resources.
pub type PodSize = BTreeMap<String, Quantity>;

/// What the pods of an application reserve on nodes: their requests, with overheads, sidecars and templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationSize {
    pub driver: PodSize,
    /// Of each executor.
    pub executor: PodSize,
    /// How many executors there are at first.
    pub initial_executors: u64,
    /// How many there may be.
    pub executors: Executors,
}

/// How many executors an application may have at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executors {
    AtMost(u64),
    /// Any number, since this property isn't set.
    Unbounded(&'static str),
}

/// The size can't be computed, because a property can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSize {
    pub property: String,
    pub reason: String,
}

impl ApplicationSize {
    /// Computes the size of an application from its objects and properties.
    ///
    /// # Errors
    /// [`UnknownSize`].
    pub fn of(judged: &Judged<'_>) -> Result<Self, UnknownSize> {
        let number =
            |key: &str| UnknownSize { property: key.to_owned(), reason: "it is not a whole number".to_owned() };
        let pod = judged.objects.iter().find(|object| object["kind"] == "Pod");
        let executor = ExecutorPod::derive(judged, SparkRelease::from_pod(pod));
        if let Some((property, reason)) = executor.unreadable.first() {
            return Err(UnknownSize { property: property.clone(), reason: reason.clone() });
        }
        Ok(Self {
            driver: pod.map(|pod| reserved(&Node::new(Root::Driver, pod))).unwrap_or_default(),
            executor: reserved(&Node::new(Root::Executor, &executor.pod)),
            initial_executors: initial_count(judged).map_err(number)?,
            executors: match count(judged) {
                executor::Executors::AtMost(most, _) => Executors::AtMost(most),
                executor::Executors::Unbounded(key) => Executors::Unbounded(key),
                executor::Executors::Unreadable(key) => return Err(number(key)),
            },
        })
    }
}

fn reserved(pod: &Node<'_>) -> PodSize {
    Size::reserved(&pod.field("spec")).amounts
}
