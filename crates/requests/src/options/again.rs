//! What follows an attempt that has ended: another one with more memory or on other nodes, or the same driver again and again. They are
//! properties that stay with the driver, so that its objects and the stored request say what applies to them.

use std::collections::BTreeMap;

use super::value;
use crate::submitter::OWN;
use sparkgate_spark::{Refusal, SparkVersion, sizes};

/// The release whose grammar of sizes has all units.
const GRAMMAR: SparkVersion = SparkVersion::V4_3;
const DEFAULT_FACTOR: f64 = 1.5;
const MAX_FACTOR: f64 = 10.0;
/// A property of Spark's standalone master: a driver that fails is started again.
const SUPERVISE: &str = "spark.driver.supervise";
/// The option of spark-submit that sets it.
pub const SUPERVISE_OPTION: &str = "--supervise";

/// The names of the properties after the prefix `spark.sparkgate.`.
pub const RETRIES: &str = "memoryGrowth.retries";
pub const FACTOR: &str = "memoryGrowth.factor";
pub const MAX: &str = "memoryGrowth.max";
pub const RESTART: &str = "restart";
/// It is followed by the key of a node selector.
pub const AFTER_NODE_LOSS: &str = "afterNodeLoss.nodeSelector.";

/// More memory for the attempt after one that ran out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MemoryGrowth {
    /// The most attempts that follow for this reason. They count against no other budget.
    pub retries: Option<u32>,
    /// What the memory is multiplied by each time.
    pub factor: Option<f64>,
    /// The most memory of a pod, in MiB.
    pub max_mib: Option<i64>,
}

/// Where the attempts run that follow one which the cluster ended: its node was lost or drained, or a pod replaced it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AfterNodeLoss {
    /// Node selectors of the driver and its executors. Each replaces the one that the submission has; `None` removes it.
    pub node_selector: BTreeMap<String, Option<String>>,
}

/// Which ends of a driver are followed by another attempt, however many there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    Never,
    /// Those of a driver that failed, or whose end is unknown.
    OnFailure,
    /// Those, and success.
    Always,
}

impl Restart {
    pub const ALL: [Self; 3] = [Self::Never, Self::OnFailure, Self::Always];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::OnFailure => "onFailure",
            Self::Always => "always",
        }
    }

    /// Parses the word of a property or a field.
    ///
    /// # Errors
    /// A sentence with the words that there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|restart| restart.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not one of never, onFailure and always"))
    }
}

impl MemoryGrowth {
    /// Sets the value of a property. `false` if it is none of these.
    pub(super) fn set(&mut self, name: &str, text: &str) -> Result<bool, String> {
        match name {
            RETRIES => self.retries = Some(value::count(text)?),
            FACTOR => self.factor = Some(text.parse().map_err(|_| format!("{text:?} is not a number, such as 1.5"))?),
            MAX => self.max_mib = Some(parse_max(text)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    #[must_use]
    pub(super) fn or(self, others: Self) -> Self {
        Self {
            retries: self.retries.or(others.retries),
            factor: self.factor.or(others.factor),
            max_mib: self.max_mib.or(others.max_mib),
        }
    }

    pub(super) fn check(&self, most_retries: Option<u32>) -> Result<(), Refusal> {
        let refuse = |field: &str, reason: String| Err(Refusal::field(format!("memoryGrowth.{field}"), reason));
        if let Err(reason) = value::within(self.retries, most_retries) {
            return refuse("retries", reason);
        }
        if let Some(factor) = self.factor.filter(|factor| !(*factor > 1.0 && *factor <= MAX_FACTOR)) {
            return refuse("factor", format!("{factor} must be more than 1, and at most {MAX_FACTOR}"));
        }
        let is_alone = self.retries.is_none() && (self.factor.is_some() || self.max_mib.is_some());
        if is_alone {
            return refuse("retries", "without a number of retries, no attempt gets more memory".to_owned());
        }
        Ok(())
    }

    /// Refuses a maximum below the heap that the request asks for.
    pub(super) fn check_max(&self, properties: &BTreeMap<String, String>) -> Result<(), Refusal> {
        let Some(max) = self.max_mib else { return Ok(()) };
        for key in ["spark.driver.memory", "spark.executor.memory"] {
            let heap = properties.get(key).and_then(|text| sizes::mib(text, GRAMMAR));
            if let Some(heap) = heap.filter(|heap| *heap >= max) {
                let reason = format!("{max} MiB is no more than {key} already is: {heap} MiB, without the overhead");
                return Err(Refusal::field("memoryGrowth.max", reason));
            }
        }
        Ok(())
    }

    /// Returns whether another attempt may follow.
    pub fn is_on(&self) -> bool {
        self.retries.is_some_and(|retries| retries > 0)
    }

    /// Reads what was kept with a driver.
    pub fn of_driver(properties: &BTreeMap<String, String>) -> Self {
        let mut growth = Self::default();
        for name in [RETRIES, FACTOR, MAX] {
            if let Some(text) = properties.get(&format!("{OWN}{name}")) {
                // It was checked when the submission was accepted.
                let _ = growth.set(name, text);
            }
        }
        growth
    }

    /// Returns the factor that applies.
    pub fn factor_or_default(&self) -> f64 {
        self.factor.unwrap_or(DEFAULT_FACTOR)
    }
}

impl AfterNodeLoss {
    /// Sets the value of a property; an empty one removes the selector. `false` if it is none of these.
    pub(super) fn set(&mut self, name: &str, text: &str) -> bool {
        let Some(key) = name.strip_prefix(AFTER_NODE_LOSS) else { return false };
        self.node_selector.insert(key.to_owned(), (!text.is_empty()).then(|| text.to_owned()));
        true
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        for (key, wanted) in &self.node_selector {
            value::label(key, wanted.as_deref().unwrap_or_default())
                .map_err(|reason| Refusal::field(format!("afterNodeLoss.nodeSelector[\"{key}\"]"), reason))?;
        }
        if self.node_selector.len() > value::LABELS_MAX {
            let reason = format!("{} node selectors: there may be {}", self.node_selector.len(), value::LABELS_MAX);
            return Err(Refusal::field("afterNodeLoss.nodeSelector", reason));
        }
        Ok(())
    }

    /// Reads what was kept with a driver.
    pub fn of_driver(properties: &BTreeMap<String, String>) -> Self {
        let mut found = Self::default();
        for (key, value) in properties {
            if let Some(name) = key.strip_prefix(OWN) {
                found.set(name, value);
            }
        }
        found
    }

    fn keep(&self, properties: &mut BTreeMap<String, String>) {
        for (key, value) in &self.node_selector {
            properties.insert(format!("{OWN}{AFTER_NODE_LOSS}{key}"), value.clone().unwrap_or_default());
        }
    }
}

/// Parses a maximum, as Spark writes sizes.
///
/// # Errors
/// A sentence that says what is expected.
pub fn parse_max(text: &str) -> Result<i64, String> {
    let size = sizes::mib(text, GRAMMAR).filter(|size| *size > 0);
    size.ok_or_else(|| format!("{text:?} is not a size, such as 16g"))
}

/// Writes all of them to the properties of the driver.
pub(super) fn keep(
    growth: &MemoryGrowth,
    restart: Option<Restart>,
    after_node_loss: &AfterNodeLoss,
    properties: &mut BTreeMap<String, String>,
) {
    after_node_loss.keep(properties);
    let MemoryGrowth { retries, factor, max_mib } = growth;
    let growth = [
        (RETRIES, retries.map(|retries| retries.to_string())),
        (FACTOR, factor.map(|factor| factor.to_string())),
        (MAX, max_mib.map(|max| format!("{max}m"))),
    ];
    let restart = restart.filter(|restart| *restart != Restart::Never).map(|restart| restart.as_str().to_owned());
    for (name, value) in growth.into_iter().chain([(RESTART, restart)]) {
        if let Some(value) = value {
            properties.insert(format!("{OWN}{name}"), value);
        }
    }
}

/// Returns what Spark's own word for a driver that is restarted asks for.
pub(super) fn supervised(properties: &BTreeMap<String, String>) -> Option<Restart> {
    let is_on = properties.get(SUPERVISE).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    is_on.then_some(Restart::OnFailure)
}
