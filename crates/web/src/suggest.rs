//! Finds the known name that a misspelt one stands for.

/// Returns `; did you mean …?` if one of the names is similar, otherwise nothing.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    closest(name, known).map_or_else(String::new, |known| format!("; did you mean `{known}`?"))
}

/// Returns the most similar name, if it differs from `name` in at most a third of its characters.
pub fn closest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // Longer names are no misspelling of any, and the comparison takes time.
    let name = Some(name).filter(|name| name.len() <= 64)?.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&name, &known.to_lowercase());
    let (distance, closest) =
        known.iter().map(|known| (distance(known), *known)).min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= closest.len()).then_some(closest)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_misspelt_name_is_recognised() {
        let known = ["sparkProperties", "appResource", "appArgs", "name"];
        for (name, expected) in [
            ("sparkProperty", Some("sparkProperties")),
            ("appresource", Some("appResource")),
            ("app_resource", Some("appResource")),
            ("nmae", Some("name")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(closest(name, &known), expected, "{name}");
        }
    }
}
