//! The effect of each of Spark's keys for Kubernetes. `docs/reference/properties.md` is generated from this table, and a test compares
//! them.
//!
//! The rows are the entries that Spark registers in `org.apache.spark.deploy.k8s.Config`, the other families and plain keys
//! that its code reads, and the keys of Spark's core that shape a driver pod.

mod core;
mod driver;
mod executor;
mod families;
pub mod misspelt;
mod submission;

/// One key, or, with a dot at its end, a family of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub key: &'static str,
    /// The Spark release that introduced it, according to Spark's own registry.
    pub since: &'static str,
    pub effect: Effect,
    /// The meaning of the key, or why it is refused.
    pub meaning: &'static str,
}

/// The effect of a key. All but the refused ones are also in the driver's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It determines the driver's objects.
    ShapesDriver,
    /// The driver process reads it, mostly for its executors.
    ReadByDriver,
    /// It configures how spark-submit submits, which the gateway does in its own way.
    SubmitClient,
    /// A request that has it is refused.
    Refused,
}

/// A titled part of the table.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    pub title: &'static str,
    pub keys: &'static [Key],
}

/// The whole table.
pub const KEYS: [Section; 5] = [
    Section { title: "The driver", keys: &driver::KEYS },
    Section { title: "Families for driver and executors", keys: &families::KEYS },
    Section { title: "Executors, read by the driver", keys: &executor::KEYS },
    Section { title: "Keys of Spark's core", keys: &core::KEYS },
    Section { title: "Submitting", keys: &submission::KEYS },
];

/// Returns whether some release of Spark knows a key below `spark.kubernetes.`. (To Spark, others are plain properties: it
/// never reports a misspelt one.) Any other key counts as known.
pub fn is_known(key: &str) -> bool {
    let matches = |row: &Key| match row.key.ends_with('.') {
        true => key.starts_with(row.key),
        false => key == row.key,
    };
    !key.starts_with("spark.kubernetes.") || KEYS.iter().flat_map(|section| section.keys).any(matches)
}

const fn shapes(key: &'static str, since: &'static str, meaning: &'static str) -> Key {
    Key { key, since, effect: Effect::ShapesDriver, meaning }
}

const fn read(key: &'static str, since: &'static str, meaning: &'static str) -> Key {
    Key { key, since, effect: Effect::ReadByDriver, meaning }
}

const fn client(key: &'static str, since: &'static str, meaning: &'static str) -> Key {
    Key { key, since, effect: Effect::SubmitClient, meaning }
}

const fn refused(key: &'static str, since: &'static str, meaning: &'static str) -> Key {
    Key { key, since, effect: Effect::Refused, meaning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_is_unknown() {
        assert!(
            is_known("spark.kubernetes.driver.label.team")
                && is_known("spark.anything")
                && is_known("spark.kubernetes.namespace")
        );
        assert!(!is_known("spark.kubernetes.drvier.label.team") && !is_known("spark.kubernetes.driver.labels"));
    }

    #[test]
    fn each_key_has_one_row() {
        let mut keys: Vec<&str> = KEYS.iter().flat_map(|section| section.keys).map(|row| row.key).collect();
        keys.sort_unstable();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
