//! A judgement in progress: the facts that several rules need, and the violations found so far.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    cause,
    compiled::Rules,
    executor::{ExecutorPod, SparkRelease},
    judged::Judged,
    node::{Node, Root},
    violation::Violation,
};

/// Maximum number of violations that are reported. A hostile request could break a rule in each of its values.
const MAX_VIOLATIONS: usize = 100;

pub(crate) struct Judgement<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) judged: &'a Judged<'a>,
    /// The driver's pod, if there is exactly one.
    pub(crate) pod: Option<&'a Value>,
    violations: Vec<Violation>,
    /// How many violations were found beyond the maximum.
    left_out: usize,
}

/// The pod that rules are applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Driver,
    Executor,
}

impl Role {
    pub(crate) fn root(self) -> Root<'static> {
        match self {
            Self::Driver => Root::Driver,
            Self::Executor => Root::Executor,
        }
    }

    /// Returns the word for the role in Spark's properties and labels.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Executor => "executor",
        }
    }
}

impl<'a> Judgement<'a> {
    pub(crate) fn new(rules: &'a Rules, judged: &'a Judged<'a>) -> Self {
        let mut pods = judged.objects.iter().filter(|object| object["kind"] == "Pod");
        let pod = pods.next().filter(|_| pods.next().is_none());
        Self { rules, judged, pod, violations: Vec::new(), left_out: 0 }
    }

    /// Reports that a value of an object breaks a rule.
    pub(crate) fn report(&mut self, rule: &str, node: &Node<'_>, message: impl Into<String>) {
        if self.is_full() {
            return;
        }
        let cause = cause::of(node, self.judged);
        self.violations.push(Violation { rule: rule.to_owned(), path: node.path(), message: message.into(), cause });
    }

    /// Reports that a property breaks a rule.
    pub(crate) fn report_property(&mut self, rule: &str, key: &str, message: impl Into<String>) {
        if self.is_full() {
            return;
        }
        let path = format!("sparkProperties[\"{}\"]", crate::node::shortened(key));
        let cause = cause::property_cause(key, self.judged);
        self.violations.push(Violation { rule: rule.to_owned(), path, message: message.into(), cause: Some(cause) });
    }

    /// Reports a violation with a path of its own.
    pub(crate) fn report_at(&mut self, rule: &str, path: &str, message: impl Into<String>) {
        if self.is_full() {
            return;
        }
        let (rule, path) = (rule.to_owned(), path.to_owned());
        self.violations.push(Violation { rule, path, message: message.into(), cause: None });
    }

    fn is_full(&mut self) -> bool {
        let full = self.violations.len() >= MAX_VIOLATIONS;
        self.left_out += usize::from(full);
        full
    }

    /// Derives the executors' pod from the properties and the template.
    pub(crate) fn executor(&self) -> ExecutorPod {
        ExecutorPod::derive(self.judged, SparkRelease::from_pod(self.pod))
    }

    /// Returns the names of a kind of object that is created along with the driver.
    pub(crate) fn creates(&self, kind: &str, name: &str) -> bool {
        let mut objects = self.judged.objects.iter();
        objects.any(|object| object["kind"] == kind && object["metadata"]["name"] == name)
    }

    /// Returns the violations, each once, in the order in which they were found.
    pub(crate) fn into_violations(mut self) -> Vec<Violation> {
        let mut seen = BTreeSet::new();
        self.violations.retain(|violation| seen.insert(violation.clone()));
        if self.left_out > 0 {
            let message = format!("{} more violations are not listed", self.left_out);
            let (rule, path) = ("structure".to_owned(), "Pod".to_owned());
            self.violations.push(Violation { rule, path, message, cause: None });
        }
        self.violations
    }
}
