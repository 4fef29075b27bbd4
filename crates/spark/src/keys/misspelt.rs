//! Finds properties that are probably misspelt. Spark itself never reports one: to it, any name is a property.
//!
//! The table lacks most of Spark's properties, but of those in its releases 3.5 and 4.3 none resembles one of the table.

use std::{collections::HashSet, sync::LazyLock};

use super::KEYS;

/// Maximum number of letters to insert, delete or replace between a property and the one that was meant.
const EDITS: u8 = 2;
const PREFIX: &str = "spark.";
/// No family has more dots.
const DOTS: usize = 8;

/// The keys of the table.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let keys = KEYS.iter().flat_map(|section| section.keys).map(|row| row.key);
    keys.map(|key| Row { key, dots: key.ends_with('.').then(|| key.matches('.').count()) }).collect()
});
/// The same, to look one up.
static LISTED: LazyLock<HashSet<&str>> = LazyLock::new(|| ROWS.iter().map(|row| row.key).collect());

struct Row {
    key: &'static str,
    /// Number of dots in the key of a family.
    dots: Option<usize>,
}

impl Row {
    /// Returns the part of a property to compare with this row: the whole property, or the beginning with as many dots as the
    /// family. `dots` are the positions of the property's dots.
    fn part<'a>(&self, property: &'a str, dots: &[usize]) -> Option<&'a str> {
        let Some(count) = self.dots else { return Some(property) };
        let last = *dots.get(count.checked_sub(1)?)?;
        Some(&property[..=last]).filter(|part| part.len() < property.len())
    }
}

/// Returns a warning if the property is probably misspelt: it resembles one of the table, or lacks the prefix `spark.`.
pub fn warning(key: &str) -> Option<String> {
    let meant = meant(key)?;
    Some(match key.starts_with(PREFIX) {
        true => format!("{key}: Spark has no such property; did you mean {meant}?"),
        false => format!("{key}: has no effect, because it doesn't begin with {PREFIX}; did you mean {meant}?"),
    })
}

/// Returns the property that was probably meant, if the given one is probably misspelt.
pub fn meant(key: &str) -> Option<String> {
    if !key.starts_with(PREFIX) {
        return Some(format!("{PREFIX}{key}")).filter(|meant| is_listed(meant));
    }
    if is_listed(key) {
        return None;
    }
    let mut positions = [0; DOTS];
    let found = key.match_indices('.').zip(&mut positions).map(|((at, _), position)| *position = at).count();
    let dots = &positions[..found];
    // The number of edits, and what to write instead of which part. Another case is no edit.
    let mut nearest: Option<(u8, &str, &str)> = None;
    for row in ROWS.iter() {
        let Some(part) = row.part(key, dots) else { continue };
        if part.eq_ignore_ascii_case(row.key) {
            nearest = Some((0, row.key, part));
            break;
        }
        let fewer = nearest.map_or(EDITS + 1, |(edits, ..)| edits);
        if let Some(edits) = (1..fewer).find(|edits| is_near(part.as_bytes(), row.key.as_bytes(), *edits)) {
            nearest = Some((edits, row.key, part));
        }
    }
    let (_, row, part) = nearest?;
    Some(format!("{row}{}", &key[part.len()..]))
}

/// Returns whether a property is in the table, or belongs to one of its families.
fn is_listed(key: &str) -> bool {
    let mut families = key.match_indices('.').map(|(at, _)| &key[..=at]).filter(|family| family.len() < key.len());
    LISTED.contains(key) && !key.ends_with('.') || families.any(|family| LISTED.contains(family))
}

/// Returns whether `edits` inserted, deleted or replaced letters make one text of the other.
fn is_near(one: &[u8], other: &[u8], edits: u8) -> bool {
    if one.len().abs_diff(other.len()) > usize::from(edits) {
        return false;
    }
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    match (&one[same..], &other[same..]) {
        ([], rest) | (rest, []) => rest.len() <= usize::from(edits),
        _ if edits == 0 => false,
        (one @ [_, after_one @ ..], other @ [_, after_other @ ..]) => {
            is_near(after_one, after_other, edits - 1)
                || is_near(after_one, other, edits - 1)
                || is_near(one, after_other, edits - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_property_names_the_one_that_was_meant() {
        for (key, property) in [
            ("spark.executor.instnces", "spark.executor.instances"),
            ("spark.executor.instance", "spark.executor.instances"),
            ("spark.executor.meomry", "spark.executor.memory"),
            ("spark.kubernetes.driver.podTemplatefile", "spark.kubernetes.driver.podTemplateFile"),
            ("spark.kubernetes.drvier.label.team", "spark.kubernetes.driver.label.team"),
            ("spark.kubernetes.driver.labels.team", "spark.kubernetes.driver.label.team"),
            ("spark.Driver.Memory", "spark.driver.memory"),
            ("executor.memory", "spark.executor.memory"),
            ("kubernetes.driver.label.team", "spark.kubernetes.driver.label.team"),
        ] {
            assert_eq!(meant(key).as_deref(), Some(property), "{key}");
        }
        assert_eq!(
            warning("executor.memory").unwrap(),
            "executor.memory: has no effect, because it doesn't begin with spark.; did you mean spark.executor.memory?"
        );
        assert_eq!(
            warning("spark.executor.instnces").unwrap(),
            "spark.executor.instnces: Spark has no such property; did you mean spark.executor.instances?"
        );
    }

    #[test]
    fn other_properties_are_not_warned_of() {
        let own = ["spark.mycompany.team", "spark.sql.shuffle.partitions", "team", "", "spark.", "memory", "spark.x"];
        let listed = KEYS.iter().flat_map(|section| section.keys).map(|row| row.key);
        let of_families =
            ["spark.kubernetes.driver.label.lable", "spark.executorEnv.PATH", "spark.driver.resource.gpu.amount"];
        for key in own.into_iter().chain(listed).chain(of_families) {
            assert_eq!(meant(key), None, "{key}");
        }
    }
}
