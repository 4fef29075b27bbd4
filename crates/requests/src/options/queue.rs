//! The queue that a request names. Each API has a word for it, and all of them name a queue of the access file.
//!
//! | word | used by |
//! |---|---|
//! | the field `queue` | the resource API; Livy's batches, for YARN |
//! | the property `spark.sparkgate.queue` | all APIs |
//! | the option `--queue`, the property `spark.yarn.queue` | spark-submit, for YARN |
//! | the label `kueue.x-k8s.io/queue-name` of the driver | jobs of Kueue |
//!
//! A tenant without queues can't use the first two words. Words for YARN are ignored there with a warning, and the label stays on the
//! pods for Kueue. Of the defaults of the operator, only `spark.sparkgate.queue` names a queue.

use std::collections::BTreeMap;

use crate::submitter::OWN;
use sparkgate_spark::Refusal;

/// The option of spark-submit.
pub const OPTION: &str = "--queue";
/// The field of a request whose API has one.
const FIELD: &str = "queue";
/// The field of [`OPTION`].
const FIELD_OF_OPTION: &str = "appArgs[--queue]";
/// The property that `--queue` sets for YARN.
const YARN: &str = "spark.yarn.queue";
/// The labels of the driver and of its executors that name a queue of Kueue.
const LABEL: &str = "spark.kubernetes.driver.label.kueue.x-k8s.io/queue-name";
const EXECUTOR_LABEL: &str = "spark.kubernetes.executor.label.kueue.x-k8s.io/queue-name";

/// The words of a request.
#[derive(Debug, Clone, Copy)]
pub struct QueueWords<'a> {
    /// The value of the field `queue`, and whether it is a word for YARN.
    pub field: Option<(&'a str, bool)>,
    /// The value of `--queue`.
    pub option: Option<&'a str>,
    /// All properties, with defaults.
    pub properties: &'a BTreeMap<String, String>,
    /// The origins of the properties that the request doesn't set.
    pub origins: &'a BTreeMap<String, String>,
}

/// The queue that a request names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestedQueue {
    pub name: Option<String>,
    /// The field that names it.
    pub field: String,
    /// Warnings about words that are ignored.
    pub warnings: Vec<String>,
    /// Properties that name the queue, and must not reach the pods.
    pub consumed: Vec<&'static str>,
}

/// A word of a request.
struct Word<'a> {
    field: String,
    /// Its name in a warning.
    shown: &'a str,
    name: &'a str,
    is_for_yarn: bool,
}

impl QueueWords<'_> {
    /// Returns the queue that the words name.
    ///
    /// # Errors
    /// Two words name different queues.
    pub fn resolve(self, has_queues: bool) -> Result<RequestedQueue, Refusal> {
        let own = format!("{OWN}{FIELD}");
        let mut words = self.words(&own, has_queues);
        let mut requested = RequestedQueue::default();
        if !has_queues {
            let ignored = words.extract_if(.., |word| word.is_for_yarn);
            let warning =
                |word: Word<'_>| format!("{}: {:?} has no effect: the tenant has no queues", word.shown, word.name);
            requested.warnings = ignored.map(warning).collect();
        }
        if let Some((first, others)) = words.split_first() {
            if let Some(other) = others.iter().find(|other| other.name != first.name) {
                let reason = format!(
                    "it names queue {:?}, and {} names queue {:?}: name one queue",
                    other.name, first.field, first.name
                );
                return Err(Refusal::field(&other.field, reason));
            }
            (requested.name, requested.field) = (Some(first.name.to_owned()), first.field.clone());
        } else if let Some(name) = self.properties.get(&own) {
            (requested.name, requested.field) = (Some(name.trim().to_owned()), Refusal::property_field(&own));
        }
        if has_queues && self.asked(LABEL).is_some() {
            requested.consumed = [LABEL, EXECUTOR_LABEL].into_iter().filter(|key| self.asked(key).is_some()).collect();
        }
        Ok(requested)
    }

    /// Returns the words of the request itself.
    fn words<'a>(&'a self, own: &'a str, has_queues: bool) -> Vec<Word<'a>> {
        let property = |key: &'a str, is_for_yarn| {
            let name = self.asked(key)?;
            Some(Word { field: Refusal::property_field(key), shown: key, name, is_for_yarn })
        };
        let given = |name: &&str| !name.is_empty();
        let field = self.field.map(|(name, is_for_yarn)| (name.trim(), is_for_yarn));
        let field = field.filter(|(name, is_for_yarn)| !is_for_yarn || given(name));
        let option = self.option.map(str::trim).filter(given);
        let all = [
            field.map(|(name, is_for_yarn)| Word { field: FIELD.to_owned(), shown: FIELD, name, is_for_yarn }),
            property(own, false),
            option.map(|name| Word { field: FIELD_OF_OPTION.to_owned(), shown: OPTION, name, is_for_yarn: true }),
            property(YARN, true).filter(|word| given(&word.name)),
            has_queues.then(|| property(LABEL, false)).flatten(),
        ];
        all.into_iter().flatten().collect()
    }

    /// Returns the value of a property that the request itself sets.
    fn asked(&self, key: &str) -> Option<&str> {
        self.properties.get(key).filter(|_| !self.origins.contains_key(key)).map(|value| value.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn map(pairs: Pairs<'_>) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn resolve(
        field: Option<(&str, bool)>,
        option: Option<&str>,
        properties: Pairs<'_>,
        has_queues: bool,
    ) -> Result<RequestedQueue, String> {
        let (properties, origins) = (map(properties), BTreeMap::new());
        let words = QueueWords { field, option, properties: &properties, origins: &origins };
        words.resolve(has_queues).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn each_word_names_the_same_queue() {
        let own = "sparkProperties[\"spark.sparkgate.queue\"]";
        let (yarn, label) = (Refusal::property_field(YARN), Refusal::property_field(LABEL));
        let cases: [(_, _, Pairs<'_>, &str); 6] = [
            (Some(("night", false)), None, &[], "queue"),
            (Some(("night", true)), None, &[], "queue"),
            (None, Some("night"), &[], "appArgs[--queue]"),
            (None, None, &[("spark.sparkgate.queue", " night ")], own),
            (None, None, &[(YARN, "night")], &yarn),
            (None, None, &[(LABEL, "night")], &label),
        ];
        for (field, option, properties, expected) in cases {
            let requested = resolve(field, option, properties, true).unwrap();
            assert_eq!((requested.name.as_deref(), requested.field.as_str()), (Some("night"), expected));
            assert!(requested.warnings.is_empty());
        }
        assert_eq!(resolve(Some(("", true)), Some(""), &[(YARN, " ")], true).unwrap(), RequestedQueue::default());
        let same = resolve(Some(("night", true)), Some("night"), &[("spark.sparkgate.queue", "night")], true);
        assert_eq!(same.unwrap().name.as_deref(), Some("night"), "they agree");
    }

    #[test]
    fn two_words_for_different_queues_are_refused_with_both() {
        let refusal = resolve(Some(("day", true)), None, &[("spark.sparkgate.queue", "night")], true).unwrap_err();
        assert_eq!(
            refusal,
            "sparkProperties[\"spark.sparkgate.queue\"]: it names queue \"night\", and queue names queue \"day\": name one queue"
        );
        assert!(resolve(None, Some("day"), &[(LABEL, "night")], true).unwrap_err().contains("appArgs[--queue]"));
        assert!(resolve(Some(("day", false)), None, &[("spark.sparkgate.queue", "night")], false).is_err());
    }

    #[test]
    fn a_tenant_without_queues_gets_warnings_about_words_for_yarn() {
        let properties = [(YARN, "root.b"), (LABEL, "batch"), ("spark.sparkgate.queue", "night")];
        let requested = resolve(Some(("default", true)), Some("a"), &properties, false).unwrap();
        assert_eq!(
            requested.warnings,
            [
                "queue: \"default\" has no effect: the tenant has no queues",
                "--queue: \"a\" has no effect: the tenant has no queues",
                "spark.yarn.queue: \"root.b\" has no effect: the tenant has no queues",
            ]
        );
        assert_eq!((requested.name.as_deref(), requested.consumed.len()), (Some("night"), 0), "it is refused later");
    }

    #[test]
    fn labels_of_a_tenant_with_queues_stay_off_the_pods() {
        let properties = [(LABEL, "night"), (EXECUTOR_LABEL, "night")];
        assert_eq!(resolve(None, None, &properties, true).unwrap().consumed, [LABEL, EXECUTOR_LABEL]);
    }

    #[test]
    fn of_defaults_only_the_gateways_property_counts() {
        let properties = map(&[(YARN, "a"), (LABEL, "b"), ("spark.sparkgate.queue", "night")]);
        let origins = properties.keys().map(|key| (key.clone(), "tenant".to_owned())).collect();
        let words = |field| QueueWords { field, option: None, properties: &properties, origins: &origins };
        let requested = words(None).resolve(true).unwrap();
        assert_eq!((requested.name.as_deref(), requested.consumed.len()), (Some("night"), 0));
        let requested = words(Some(("day", true))).resolve(true).unwrap();
        assert_eq!(requested.name.as_deref(), Some("day"), "a request replaces defaults");
    }
}
