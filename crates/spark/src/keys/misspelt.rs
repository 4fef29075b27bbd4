//! Finds properties that are probably misspelt. Spark itself never reports one: to it, any name is a property.
//!
//! The table lacks most of Spark's properties, but of those in its releases 3.5 and 4.3 none resembles one of the table.

use super::KEYS;

/// Maximum number of letters to insert, delete or replace between a property and the one that was meant.
const EDITS: u8 = 2;
const PREFIX: &str = "spark.";

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
    let listed = || KEYS.iter().flat_map(|section| section.keys).map(|row| row.key);
    if listed().any(|row| part(key, row) == Some(row)) {
        return None;
    }
    if !key.starts_with(PREFIX) {
        let row = listed().find(|row| part(key, &row[PREFIX.len()..]) == Some(&row[PREFIX.len()..]));
        return row.map(|_| format!("{PREFIX}{key}"));
    }
    let other_case = || listed().find(|row| part(key, row).is_some_and(|part| part.eq_ignore_ascii_case(row)));
    let nearest = || {
        (1..=EDITS).find_map(|edits| {
            listed().find(|row| part(key, row).is_some_and(|part| is_near(part.as_bytes(), row.as_bytes(), edits)))
        })
    };
    let row = other_case().or_else(nearest)?;
    Some(format!("{row}{}", &key[part(key, row)?.len()..]))
}

/// Returns the part of a key to compare with a row: the whole key, or the beginning with as many dots as the row of a family.
fn part<'a>(key: &'a str, row: &str) -> Option<&'a str> {
    if !row.ends_with('.') {
        return Some(key);
    }
    let (last, _) = key.match_indices('.').nth(row.matches('.').count() - 1)?;
    Some(&key[..=last]).filter(|part| part.len() < key.len())
}

/// Returns whether `edits` inserted, deleted or replaced letters make one text of the other.
fn is_near(one: &[u8], other: &[u8], edits: u8) -> bool {
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
