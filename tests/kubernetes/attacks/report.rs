//! What became of the cases of a round.

use std::{collections::BTreeMap, fmt::Write};

use crate::attacks::{
    corpus::{Case, Expected, direct::Direct},
    world::{Answer, Reply, Round},
};

/// How many failures of a round are shown.
const SHOWN: usize = 60;

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The gateway refused it for another reason than its policy.
    RefusedByGateway(String),
    /// The policy refused it, by these rules.
    RefusedByPolicy(Vec<String>),
    /// The API server refused the driver's pod.
    RefusedByCluster(String),
    /// The driver exists, and the API server refused its executor.
    ExecutorRefused(String),
    /// The driver exists, and its executor could.
    Exists,
}

impl Outcome {
    /// Returns the outcome of a request that the gateway refused.
    pub(crate) fn of_gateway(answer: &Answer) -> Self {
        let message = answer.body["message"].as_str().unwrap_or_default();
        if let Some(violations) = answer.body["violations"].as_array() {
            return Self::by_rules(violations.iter().filter_map(|violation| violation["rule"].as_str()));
        }
        // Spark's protocol has only a text.
        if answer.status == 422 && message.contains("policy") {
            return Self::by_rules(message.split([' ', '\n']).filter_map(|word| word.strip_suffix(':')));
        }
        Self::RefusedByGateway(format!("{} {}", answer.status, answer.body))
    }

    fn by_rules<'a>(rules: impl Iterator<Item = &'a str>) -> Self {
        Self::RefusedByPolicy(rules.map(str::to_owned).collect())
    }

    fn is_refused(&self) -> bool {
        *self != Self::Exists
    }
}

pub(crate) struct Report {
    round: Round,
    counts: BTreeMap<&'static str, usize>,
    failures: Vec<String>,
    outside: usize,
}

impl Report {
    pub(crate) fn new(round: Round) -> Self {
        Self { round, counts: BTreeMap::new(), failures: Vec::new(), outside: 0 }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Adds a case, and compares what became of it with what is expected of this round.
    pub(crate) fn add(&mut self, case: &Case, outcome: &Outcome) {
        self.count("requests");
        self.count(match outcome {
            Outcome::RefusedByGateway(_) => "refused by the gateway",
            Outcome::RefusedByPolicy(_) => "refused by the policy",
            Outcome::RefusedByCluster(_) => "driver refused by the API server",
            Outcome::ExecutorRefused(_) => "executor refused by the API server",
            Outcome::Exists if case.expected == Expected::Passes => "must pass, exists",
            Outcome::Exists => "exists, needn't be refused",
        });
        let by_gateway = matches!(outcome, Outcome::RefusedByGateway(_));
        let by_rule = matches!(outcome, Outcome::RefusedByPolicy(rules) if rules.iter().any(|rule| rule == case.rule));
        let fine = match case.expected {
            Expected::Passes => *outcome == Outcome::Exists,
            Expected::Harmless => true,
            Expected::RefusedByGateway => by_gateway || by_rule,
            _ if self.round.has_policy() => by_gateway || by_rule,
            Expected::Refused => outcome.is_refused(),
            Expected::RefusedByPolicy | Expected::RefusedByPolicyAlone => true,
        };
        if !fine {
            self.failures.push(format!("{:?}: {} ({}): {outcome:?}", case.expected, case.name, case.rule));
        }
    }

    /// Adds a request of a driver to the API server.
    pub(crate) fn add_direct(&mut self, direct: &Direct, reply: Reply) {
        self.count("requests of a driver");
        self.count(match (&reply, direct.expected) {
            (Err(_), _) => "request of a driver refused",
            (Ok(_), Expected::Passes) => "must pass, accepted",
            (Ok(_), _) => "accepted without effect",
        });
        let fine = match direct.expected {
            Expected::Passes => reply.is_ok(),
            Expected::Harmless => true,
            // Not because it can't be read.
            _ => matches!(&reply, Err((status, _)) if [403, 422, 404, 405].contains(status)),
        };
        if !fine {
            let answer =
                reply.map_or_else(|(status, message)| format!("{status} {message}"), |_| "accepted".to_owned());
            self.failures.push(format!("{:?}: {} ({}): {answer}", direct.expected, direct.name, direct.rule));
        }
    }

    /// Adds how a case is explained otherwise than it was answered.
    pub(crate) fn explained(&mut self, case: &Case, differences: &[String]) {
        self.count("explained by a dry run and by render");
        if !differences.is_empty() {
            let differences = differences.join("; ");
            self.failures.push(format!("{:?}: {} ({}): {differences}", case.expected, case.name, case.rule));
        }
    }

    /// Adds what the oracle found outside the policy.
    pub(crate) fn outside(&mut self, name: &str, found: Vec<String>) {
        if !found.is_empty() {
            self.outside += 1;
            self.failures.push(format!("outside the policy: {name}: {}", found.join("; ")));
        }
    }

    /// Prints the summary, and fails if something is not as it must be.
    pub(crate) fn finish(self) {
        let mut summary = format!("{:?}:\n", self.round);
        for (what, count) in &self.counts {
            let _ = writeln!(summary, "  {count:5} {what}");
        }
        let _ = writeln!(summary, "  {:5} outside the policy", self.outside);
        println!("{summary}");
        // All failures, to be sorted and counted.
        if let Some(path) = std::env::var_os("SPARKGATE_ATTACKS_LOG") {
            std::fs::write(format!("{}.{:?}", path.display(), self.round), self.failures.join("\n")).unwrap();
        }
        let shown: Vec<&str> = self.failures.iter().take(SHOWN).map(String::as_str).collect();
        assert!(self.failures.is_empty(), "{summary}{} failures:\n{}", self.failures.len(), shown.join("\n"));
    }
}
