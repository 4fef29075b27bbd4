//! Options of a submission that the gateway handles itself, in addition to Spark's: an idempotency key, labels, timeouts,
//! retries. Clients of Spark's protocol set them as properties that begin with `spark.sparkgate.`.

pub mod again;
pub mod queue;
mod time;
mod value;
pub mod webhook;

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::submitter::OWN;
use again::{AfterNodeLoss, MemoryGrowth, Restart};
use sparkgate_spark::Refusal;
use sparkgate_store as store;
use sparkgate_submission::Wire;
use webhook::SubmissionWebhook;

/// The options of one request. Omitted ones may come from the operator's defaults.
#[derive(Clone, Default, PartialEq)]
pub struct SubmissionOptions {
    /// Repeating a request with the same key returns the same submission.
    pub idempotency_key: Option<String>,
    /// The client's own id of the submission, which no other submission of its tenant may have.
    pub client_id: Option<String>,
    /// The API that the request came with, if it is neither the gateway's own nor Spark's.
    pub wire: Option<Wire>,
    /// Whether the name must be unique among the live submissions of the namespace that ask for a unique one, too.
    pub unique_name: Option<bool>,
    /// Labels, in Kubernetes' syntax.
    pub labels: BTreeMap<String, String>,
    /// Maximum time from queued to running.
    pub start_timeout: Option<Duration>,
    /// Maximum time from running to the end.
    pub run_timeout: Option<Duration>,
    /// Time between SIGTERM and SIGKILL when the submission is killed.
    pub kill_grace: Option<Duration>,
    pub retries: Retries,
    pub memory_growth: MemoryGrowth,
    /// Which ends are followed by another attempt, beyond the retries.
    pub restart: Option<Restart>,
    pub after_node_loss: AfterNodeLoss,
    /// How long a run takes as a rule. One that runs longer is reported.
    pub expected_duration: Option<Duration>,
    /// The Spark release, or its line, as the request names it.
    pub spark_version: Option<String>,
    /// The queue that has to admit it.
    pub queue: Option<String>,
    /// Its priority among the submissions of its tenant in that queue.
    pub priority: Option<i32>,
    /// Where the submission's state changes are sent.
    pub webhooks: Vec<SubmissionWebhook>,
    /// It is a session of Spark Connect.
    pub session: Option<SessionOptions>,
}

/// A session of Spark Connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// Its name among the live ones of its principal in the tenant, or among the shared ones of the tenant.
    pub name: String,
    /// Members of its tenant may use it, too.
    pub is_shared: bool,
    /// It is ended after so long without a request.
    pub idle_timeout: Duration,
}

/// Writes the options that all releases of the gateway know, and others only if they are set: the text is part of the hash that
/// recognizes a repeated request, also one that an earlier release accepted.
impl fmt::Debug for SubmissionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = f.debug_struct("SubmissionOptions");
        options
            .field("idempotency_key", &self.idempotency_key)
            .field("unique_name", &self.unique_name)
            .field("labels", &self.labels)
            .field("start_timeout", &self.start_timeout)
            .field("run_timeout", &self.run_timeout)
            .field("kill_grace", &self.kill_grace)
            .field("retries", &self.retries);
        if let Some(id) = &self.client_id {
            options.field("client_id", id);
        }
        if let Some(wire) = &self.wire {
            options.field("wire", wire);
        }
        if let Some(version) = &self.spark_version {
            options.field("spark_version", version);
        }
        if let Some(queue) = &self.queue {
            options.field("queue", queue);
        }
        if let Some(priority) = &self.priority {
            options.field("priority", priority);
        }
        if self.memory_growth != MemoryGrowth::default() {
            options.field("memory_growth", &self.memory_growth);
        }
        if let Some(restart) = &self.restart {
            options.field("restart", restart);
        }
        if self.after_node_loss != AfterNodeLoss::default() {
            options.field("after_node_loss", &self.after_node_loss);
        }
        if let Some(expected) = &self.expected_duration {
            options.field("expected_duration", expected);
        }
        for SubmissionWebhook { url, format, states, secret: _ } in &self.webhooks {
            options.field("webhook", &(url, format, states));
        }
        options.finish()
    }
}

/// Maximum number of further attempts after a failed one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Retries {
    /// After a failure that the application did not cause: it was evicted, its node was lost, it was preempted, or its end is
    /// unknown.
    pub infrastructure: Option<u32>,
    /// After a failure of the application itself.
    pub application: Option<u32>,
    /// After no node had room for the driver in time.
    pub capacity: Option<u32>,
    /// After a quota had no room for it.
    pub quota: Option<u32>,
}

/// Writes the budgets that all releases know, and others only if they are set, as the options do.
impl fmt::Debug for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut retries = f.debug_struct("Retries");
        retries.field("infrastructure", &self.infrastructure).field("application", &self.application);
        for (name, most) in [("capacity", self.capacity), ("quota", self.quota)] {
            if let Some(most) = most {
                retries.field(name, &most);
            }
        }
        retries.finish()
    }
}

/// Upper bounds of the options, set by the operator; an absent value means no bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caps {
    pub start_timeout: Option<Duration>,
    pub run_timeout: Option<Duration>,
    pub kill_grace: Option<Duration>,
    pub retries: Option<u32>,
}

/// A property that stays with the driver, in seconds.
pub const EXPECTED_DURATION: &str = "expectedDuration";

/// The names of these properties after the prefix `spark.sparkgate.`; `label.` is followed by the label's key, and
/// `afterNodeLoss.nodeSelector.` by that of a node selector.
pub const NAMES: [&str; 21] = [
    "afterNodeLoss.nodeSelector.<key>",
    "clientId",
    "defaults",
    EXPECTED_DURATION,
    "idempotencyKey",
    "killGrace",
    "label.<key>",
    "maxRetries.application",
    "maxRetries.capacity",
    "maxRetries.infrastructure",
    "maxRetries.quota",
    again::FACTOR,
    again::MAX,
    again::RETRIES,
    "priority",
    "queue",
    again::RESTART,
    "runTimeout",
    "sparkVersion",
    "startTimeout",
    "uniqueName",
];

impl SubmissionOptions {
    /// Removes these properties from `properties`, because Spark doesn't know them, and returns the options.
    ///
    /// # Errors
    /// A [`Refusal`] of an invalid value, or of an unknown name with this prefix.
    pub fn take(properties: &mut BTreeMap<String, String>) -> Result<Self, Refusal> {
        let own: Vec<String> = properties.keys().filter(|key| key.starts_with(OWN)).cloned().collect();
        let mut options = Self::default();
        for key in own {
            if let Some(value) = properties.remove(&key) {
                options.set(&key, value.trim()).map_err(|reason| Refusal::property(&key, reason))?;
            }
        }
        options.restart = options.restart.or_else(|| again::supervised(properties));
        Ok(options)
    }

    /// Writes those of the options to the properties of the driver that apply to its later attempts.
    pub fn keep_in(&self, properties: &mut BTreeMap<String, String>) {
        again::keep(&self.memory_growth, self.restart, &self.after_node_loss, properties);
        if let Some(expected) = self.expected_duration {
            properties.insert(format!("{OWN}{EXPECTED_DURATION}"), expected.as_secs().to_string());
        }
    }

    /// Returns whether another attempt may follow one that has ended.
    pub fn may_repeat(&self) -> bool {
        let Retries { infrastructure, application, capacity, quota } = self.retries;
        let budgets = [infrastructure, application, capacity, quota];
        let is_restarted = self.restart.is_some_and(|restart| restart != Restart::Never);
        budgets.into_iter().flatten().any(|budget| budget > 0) || self.memory_growth.is_on() || is_restarted
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key.strip_prefix(OWN).unwrap_or(key) {
            "idempotencyKey" => self.idempotency_key = Some(value::idempotency_key(value)?),
            "clientId" => self.client_id = Some(value::client_id(value)?),
            "uniqueName" => self.unique_name = Some(value::boolean(value)?),
            "startTimeout" => self.start_timeout = Some(time::parse(value)?),
            "runTimeout" => self.run_timeout = Some(time::parse(value)?),
            EXPECTED_DURATION => self.expected_duration = Some(time::parse(value)?),
            "killGrace" => self.kill_grace = Some(time::parse(value)?),
            "sparkVersion" => self.spark_version = Some(value.to_owned()),
            "queue" => self.queue = Some(value.to_owned()),
            "priority" => self.priority = Some(value::priority(value)?),
            "maxRetries.infrastructure" => self.retries.infrastructure = Some(value::count(value)?),
            "maxRetries.application" => self.retries.application = Some(value::count(value)?),
            "maxRetries.capacity" => self.retries.capacity = Some(value::count(value)?),
            "maxRetries.quota" => self.retries.quota = Some(value::count(value)?),
            again::RESTART => self.restart = Some(Restart::parse(value)?),
            name if self.memory_growth.set(name, value)? || self.after_node_loss.set(name, value) => {}
            name => match name.strip_prefix("label.") {
                Some(label) => {
                    value::label(label, value)?;
                    self.labels.insert(label.to_owned(), value.to_owned());
                }
                None => {
                    let names = NAMES.map(|name| format!("{OWN}{name}")).join(", ");
                    return Err(format!("Sparkgate has no such property: it has {names}"));
                }
            },
        }
        Ok(())
    }

    /// Returns the text of an idempotency key without the quotes that a header may put around it.
    ///
    /// # Errors
    /// The reason why the text isn't a valid key.
    pub fn parse_key(text: &str) -> Result<String, String> {
        value::idempotency_key(text.trim())
    }

    /// Returns these options; omitted ones are taken from `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        let mut labels = others.labels;
        labels.extend(self.labels);
        Self {
            idempotency_key: self.idempotency_key.or(others.idempotency_key),
            client_id: self.client_id.or(others.client_id),
            wire: self.wire.or(others.wire),
            unique_name: self.unique_name.or(others.unique_name),
            labels,
            start_timeout: self.start_timeout.or(others.start_timeout),
            run_timeout: self.run_timeout.or(others.run_timeout),
            kill_grace: self.kill_grace.or(others.kill_grace),
            retries: Retries {
                infrastructure: self.retries.infrastructure.or(others.retries.infrastructure),
                application: self.retries.application.or(others.retries.application),
                capacity: self.retries.capacity.or(others.retries.capacity),
                quota: self.retries.quota.or(others.retries.quota),
            },
            memory_growth: self.memory_growth.or(others.memory_growth),
            restart: self.restart.or(others.restart),
            after_node_loss: AfterNodeLoss {
                node_selector: others
                    .after_node_loss
                    .node_selector
                    .into_iter()
                    .chain(self.after_node_loss.node_selector)
                    .collect(),
            },
            expected_duration: self.expected_duration.or(others.expected_duration),
            spark_version: self.spark_version.or(others.spark_version),
            queue: self.queue.or(others.queue),
            priority: self.priority.or(others.priority),
            webhooks: if self.webhooks.is_empty() { others.webhooks } else { self.webhooks },
            session: self.session.or(others.session),
        }
    }

    /// Checks that all options are within the limits of storage and of the operator, independent of how they were set.
    ///
    /// # Errors
    /// A [`Refusal`] that names the field and the limit.
    pub fn check(&self, caps: &Caps) -> Result<(), Refusal> {
        if let Some(key) = &self.idempotency_key {
            value::idempotency_key(key).map_err(|reason| Refusal::field("idempotencyKey", reason))?;
        }
        if let Some(id) = &self.client_id {
            value::client_id(id).map_err(|reason| Refusal::field("clientId", reason))?;
        }
        if self.labels.len() > value::LABELS_MAX {
            let reason = format!("{} labels: there may be {}", self.labels.len(), value::LABELS_MAX);
            return Err(Refusal::field("labels", reason));
        }
        for (key, text) in &self.labels {
            value::label(key, text).map_err(|reason| Refusal::field(format!("labels[\"{key}\"]"), reason))?;
        }
        for (field, asked, cap) in [
            ("startTimeoutSeconds", self.start_timeout, caps.start_timeout),
            ("runTimeoutSeconds", self.run_timeout, caps.run_timeout),
            ("killGraceSeconds", self.kill_grace, caps.kill_grace),
            ("expectedDurationSeconds", self.expected_duration, None),
        ] {
            time::within(asked, cap).map_err(|reason| Refusal::field(field, reason))?;
            if asked == Some(Duration::ZERO) && field != "killGraceSeconds" {
                return Err(Refusal::field(field, "a time of at least one second"));
            }
        }
        for (field, asked) in [
            ("maxRetries.infrastructure", self.retries.infrastructure),
            ("maxRetries.application", self.retries.application),
            ("maxRetries.capacity", self.retries.capacity),
            ("maxRetries.quota", self.retries.quota),
        ] {
            value::within(asked, caps.retries).map_err(|reason| Refusal::field(field, reason))?;
        }
        self.memory_growth.check(caps.retries)?;
        self.after_node_loss.check()
    }

    /// Checks them against the properties of the driver.
    ///
    /// # Errors
    /// A [`Refusal`] that names the field.
    pub fn check_with(&self, properties: &BTreeMap<String, String>) -> Result<(), Refusal> {
        self.memory_growth.check_max(properties)
    }

    /// Converts the options to their stored form.
    pub fn kept(&self) -> store::Options {
        let seconds = |time: Option<Duration>| time.and_then(|time| i32::try_from(time.as_secs()).ok());
        let times = |count: Option<u32>| count.and_then(|count| i32::try_from(count).ok()).unwrap_or_default();
        store::Options {
            idempotency_key: self.idempotency_key.clone(),
            client_id: self.client_id.clone(),
            wire: self.wire,
            unique_name: self.unique_name.unwrap_or_default(),
            labels: self.labels.clone(),
            start_timeout: seconds(self.start_timeout),
            run_timeout: seconds(self.run_timeout),
            kill_grace: seconds(self.kill_grace),
            max_retries_infrastructure: times(self.retries.infrastructure),
            max_retries_application: times(self.retries.application),
            max_retries_capacity: times(self.retries.capacity),
            max_retries_quota: times(self.retries.quota),
        }
    }

    /// Leaves to the client what its API says that it decides itself: retries, and, if it owns the pods, the timeouts that are only
    /// defaults. `is_default` says whether a property is one. The operator's caps hold for every API.
    #[must_use]
    pub fn left_to_client(mut self, is_default: impl Fn(&str) -> bool) -> Self {
        if self.wire.is_some_and(Wire::retries_by_itself) {
            self.retries = Retries::default();
            self.memory_growth = MemoryGrowth::default();
            self.restart = None;
            self.after_node_loss = AfterNodeLoss::default();
        }
        if self.wire.is_some_and(Wire::owns_pods) {
            let asked = |time: Option<Duration>, name: &str| time.filter(|_| !is_default(&format!("{OWN}{name}")));
            self.start_timeout = asked(self.start_timeout, "startTimeout");
            self.run_timeout = asked(self.run_timeout, "runTimeout");
        }
        self
    }

    /// Uses the operator's caps as timeouts where none were requested.
    #[must_use]
    pub fn capped(mut self, caps: &Caps) -> Self {
        self.start_timeout = self.start_timeout.or(caps.start_timeout);
        self.run_timeout = self.run_timeout.or(caps.run_timeout);
        self
    }
}

#[cfg(test)]
mod tests;
