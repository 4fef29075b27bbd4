//! What each of Spark's keys for Kubernetes does here. `docs/properties.md` is made of this table, and a test compares
//! them.
//!
//! The rows are the entries that Spark registers in `org.apache.spark.deploy.k8s.Config`, the families and plain keys
//! that its code reads besides, and the keys of Spark's core that shape a driver pod.

mod core;
mod driver;
mod executor;
mod families;
mod submission;

/// One key, or with a dot at its end a family of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub key: &'static str,
    /// The Spark release that brought it, as Spark's own registry has it.
    pub since: &'static str,
    pub effect: Effect,
    /// What it says, or why it is refused.
    pub meaning: &'static str,
}

/// What a key does here. All but the refused ones also stand in the driver's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It decides what the driver's objects look like.
    ShapesDriver,
    /// It is the driver process that reads it, mostly for its executors.
    ReadByDriver,
    /// It tells spark-submit how to submit. Here that is the gateway's business.
    SubmitClient,
    /// No driver is made of a request that has it.
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

/// Whether a key below `spark.kubernetes.` is one that some release of Spark knows. (To Spark others are plain
/// properties: it never complains about a misspelt one.)
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
    fn a_misspelt_key_is_not_known() {
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
