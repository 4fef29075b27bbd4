//! What a client may ask of the gateway itself, beside what Spark knows: a key that makes a request safe to repeat, labels,
//! time limits, retries. Clients of Spark's protocol ask by properties that begin with `spark.sparkgate.`.

mod time;
mod value;

use std::{collections::BTreeMap, time::Duration};

use super::submitter::OWN;
use crate::{spark::Refusal, store};

/// What one request asks for. What it leaves out may come from the operator's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmissionOptions {
    /// The same request under the same key is the same submission.
    pub idempotency_key: Option<String>,
    /// Whether no other live submission of the namespace may have its name.
    pub unique_name: Option<bool>,
    /// In Kubernetes' syntax of labels.
    pub labels: BTreeMap<String, String>,
    /// From being queued to running.
    pub start_timeout: Option<Duration>,
    /// From running to the end.
    pub run_timeout: Option<Duration>,
    /// From SIGTERM to SIGKILL, when it is killed.
    pub kill_grace: Option<Duration>,
    pub retries: Retries,
}

/// How often another attempt may follow one that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retries {
    /// By no fault of the application: evicted, its node lost, preempted, or nobody knows how it ended.
    pub infrastructure: Option<u32>,
    /// Because the application itself failed.
    pub application: Option<u32>,
}

/// The most that requests may ask for, as the operator sets it; without a value anything goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caps {
    pub start_timeout: Option<Duration>,
    pub run_timeout: Option<Duration>,
    pub kill_grace: Option<Duration>,
    pub retries: Option<u32>,
}

/// The properties of this family, by their names behind `spark.sparkgate.`; `label.` is followed by the label's key.
pub(super) const NAMES: [&str; 9] = [
    "defaults",
    "idempotencyKey",
    "killGrace",
    "label.<key>",
    "maxRetries.application",
    "maxRetries.infrastructure",
    "runTimeout",
    "startTimeout",
    "uniqueName",
];

impl SubmissionOptions {
    /// Takes them out of properties: no Spark would read them.
    ///
    /// # Errors
    /// A [`Refusal`] of a value, or of a name of this family that doesn't exist.
    pub fn take(properties: &mut BTreeMap<String, String>) -> Result<Self, Refusal> {
        let own: Vec<String> = properties.keys().filter(|key| key.starts_with(OWN)).cloned().collect();
        let mut options = Self::default();
        for key in own {
            if let Some(value) = properties.remove(&key) {
                options.set(&key, value.trim()).map_err(|reason| Refusal::property(&key, reason))?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key.strip_prefix(OWN).unwrap_or(key) {
            "idempotencyKey" => self.idempotency_key = Some(value::idempotency_key(value)?),
            "uniqueName" => self.unique_name = Some(value::boolean(value)?),
            "startTimeout" => self.start_timeout = Some(time::parse(value)?),
            "runTimeout" => self.run_timeout = Some(time::parse(value)?),
            "killGrace" => self.kill_grace = Some(time::parse(value)?),
            "maxRetries.infrastructure" => self.retries.infrastructure = Some(value::count(value)?),
            "maxRetries.application" => self.retries.application = Some(value::count(value)?),
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

    /// The text of an idempotency key without the quotes that a header may put around it.
    ///
    /// # Errors
    /// Why it can't be one.
    pub fn parse_key(text: &str) -> Result<String, String> {
        value::idempotency_key(text.trim())
    }

    /// These, and for what they leave out `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        let mut labels = others.labels;
        labels.extend(self.labels);
        Self {
            idempotency_key: self.idempotency_key.or(others.idempotency_key),
            unique_name: self.unique_name.or(others.unique_name),
            labels,
            start_timeout: self.start_timeout.or(others.start_timeout),
            run_timeout: self.run_timeout.or(others.run_timeout),
            kill_grace: self.kill_grace.or(others.kill_grace),
            retries: Retries {
                infrastructure: self.retries.infrastructure.or(others.retries.infrastructure),
                application: self.retries.application.or(others.retries.application),
            },
        }
    }

    /// Whether all of it is within what can be kept and what the operator allows, however it was asked for.
    ///
    /// # Errors
    /// A [`Refusal`] that names the field and the bound.
    pub fn check(&self, caps: &Caps) -> Result<(), Refusal> {
        if let Some(key) = &self.idempotency_key {
            value::idempotency_key(key).map_err(|reason| Refusal::field("idempotencyKey", reason))?;
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
        ] {
            time::within(asked, cap).map_err(|reason| Refusal::field(field, reason))?;
            if asked == Some(Duration::ZERO) && field != "killGraceSeconds" {
                return Err(Refusal::field(field, "a time of at least one second"));
            }
        }
        for (field, asked) in [
            ("maxRetries.infrastructure", self.retries.infrastructure),
            ("maxRetries.application", self.retries.application),
        ] {
            value::within(asked, caps.retries).map_err(|reason| Refusal::field(field, reason))?;
        }
        Ok(())
    }

    /// As they are kept.
    pub(super) fn kept(&self) -> store::Options {
        let seconds = |time: Option<Duration>| time.and_then(|time| i32::try_from(time.as_secs()).ok());
        let times = |count: Option<u32>| count.and_then(|count| i32::try_from(count).ok()).unwrap_or_default();
        store::Options {
            idempotency_key: self.idempotency_key.clone(),
            unique_name: self.unique_name.unwrap_or_default(),
            labels: self.labels.clone(),
            start_timeout: seconds(self.start_timeout),
            run_timeout: seconds(self.run_timeout),
            kill_grace: seconds(self.kill_grace),
            max_retries_infrastructure: times(self.retries.infrastructure),
            max_retries_application: times(self.retries.application),
        }
    }

    /// With the operator's caps as limits where none were asked for.
    #[must_use]
    pub fn capped(mut self, caps: &Caps) -> Self {
        self.start_timeout = self.start_timeout.or(caps.start_timeout);
        self.run_timeout = self.run_timeout.or(caps.run_timeout);
        self
    }
}

#[cfg(test)]
mod tests;
