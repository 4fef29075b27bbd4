//! References to images, in the form `registry/repository:tag@digest`.

use std::sync::LazyLock;

use regex::Regex;

use crate::pattern;

const HUB: &str = "docker.io";

/// References as they may be written, as a regular expression that RE2 reads, too: `spark`, `registry.example.org:5000/team/spark:4`,
/// `spark@sha256:…`. Unlike the grammar of registries it has no upper-case registry: its letters would count for a node's mirrors
/// and not for the registry itself.
pub const IMAGE: &str = concat!(
    r"^([a-z0-9.:\[\]-]+/)?[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*",
    r"(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@[A-Za-z0-9+._-]+:[A-Za-z0-9]+)?$",
);

static WRITTEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(IMAGE).ok());

/// Returns a reference in its full form: `spark:4.1.0` is `docker.io/library/spark:4.1.0`, and a reference without tag and digest
/// has the tag `latest` (<https://pkg.go.dev/github.com/distribution/reference>). A digest determines the image, so the tag beside
/// it is dropped. `None` for what isn't a reference.
pub(crate) fn canonical(reference: &str) -> Option<String> {
    WRITTEN.as_ref().filter(|written| written.is_match(reference))?;
    let (rest, digest) = match reference.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (reference, None),
    };
    let (name, tag) = split_tag(rest);
    let name = full_name(name);
    Some(match (digest, tag) {
        (Some(digest), _) => format!("{name}@{digest}"),
        (None, tag) => format!("{name}:{}", tag.unwrap_or("latest")),
    })
}

/// Returns a pattern for images as a regular expression for full references.
pub(crate) fn pattern(pattern: &str) -> Result<String, String> {
    let (rest, digest) = match pattern.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (pattern, None),
    };
    let (name, tag) = split_tag(rest);
    if name.chars().any(|c| c.is_ascii_uppercase()) {
        return Err("a registry and a repository are written in lower case".to_owned());
    }
    let expression = |part: &str| pattern::expression_of(part, "[^/:@]*");
    let name = match name {
        "*" | "**" => ".*".to_owned(),
        name => expression(&full_name(name)),
    };
    Ok(match (digest, tag) {
        (Some(digest), _) => format!("{name}@{}", expression(digest)),
        (None, Some(tag)) => format!("{name}:{}", expression(tag)),
        (None, None) => format!("{name}(?::[^/:@]*|@.*)"),
    })
}

/// Splits off a tag: what follows a colon behind the last slash.
fn split_tag(reference: &str) -> (&str, Option<&str>) {
    let last = reference.rfind('/').map_or(0, |slash| slash + 1);
    match reference[last..].find(':') {
        Some(colon) => (&reference[..last + colon], Some(&reference[last + colon + 1..])),
        None => (reference, None),
    }
}

/// Returns a name with its registry. The first part is a registry if it can't be part of a repository's name.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        Some(("index.docker.io" | HUB, repository)) if !repository.contains('/') && !repository.starts_with('*') => {
            format!("{HUB}/library/{repository}")
        }
        Some(("index.docker.io", repository)) => format!("{HUB}/{repository}"),
        Some((domain, _)) if domain.contains(['.', ':', '*']) || domain == "localhost" => name.to_owned(),
        Some(_) => format!("{HUB}/{name}"),
        None => format!("{HUB}/library/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Patterns;

    fn matches(text: &str, reference: &str) -> bool {
        let mut faults = Vec::new();
        let patterns = Patterns::compile_with(&[text.to_owned()], "images", &mut faults, pattern);
        assert!(faults.is_empty());
        canonical(reference).is_some_and(|reference| patterns.matches(&reference))
    }

    #[test]
    fn a_reference_without_a_registry_is_one_of_docker_hub() {
        for short in ["spark", "spark:latest", "docker.io/spark", "index.docker.io/library/spark", "library/spark"] {
            assert_eq!(canonical(short).as_deref(), Some("docker.io/library/spark:latest"), "{short}");
        }
        assert_eq!(canonical("apache/spark:4").as_deref(), Some("docker.io/apache/spark:4"));
        assert_eq!(canonical("registry.example.org:5000/a").as_deref(), Some("registry.example.org:5000/a:latest"));
        for wrong in [
            "Registry.example.org:5000/a",
            "",
            " spark",
            "spark:",
            "a b",
            "spark@x",
            "SPARK",
            "a//b",
            "http://a/b",
            "a:b:c",
            "${env:X}",
        ] {
            assert_eq!(canonical(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_pattern_without_a_tag_matches_each_tag_and_digest() {
        for reference in
            ["apache/spark", "apache/spark:4.1", "docker.io/apache/spark@sha256:ab", "apache/spark:4@sha256:ab"]
        {
            assert!(matches("apache/spark", reference), "{reference}");
            assert!(matches("**", reference) && matches("docker.io/apache/*", reference), "{reference}");
        }
        assert!(!matches("apache/spark", "apache/spark2") && !matches("apache/spark", "evil.example/apache/spark"));
        assert!(!matches("*/spark", "evil.example/x/spark") && matches("**/spark", "evil.example/x/spark"));
    }

    #[test]
    fn a_tag_beside_a_digest_says_nothing() {
        assert!(matches("spark:4.*", "spark:4.1"));
        assert!(!matches("spark:4.*", "spark:5.0") && !matches("spark:4.*", "spark"));
        assert!(!matches("spark:4.*", "spark:4.1@sha256:ab"), "the digest determines the image");
        assert!(matches("spark@sha256:ab", "spark:4.1@sha256:ab") && !matches("spark@sha256:ab", "spark@sha256:cd"));
    }

    #[test]
    fn a_pattern_of_a_registry_covers_its_port_and_folders() {
        assert!(matches("registry.example.org:5000/**", "registry.example.org:5000/a/b:1"));
        assert!(!matches("registry.example.org/**", "registry.example.org.evil.example/a"));
        assert!(!matches("registry.example.org/**", "evil/registry.example.org/a"));
        assert!(!matches("registry.example.org/team/*", "registry.example.org/team/a/b"));
    }

    #[test]
    fn images_are_permitted_as_the_admission_policy_permits_them() {
        let corpus: serde_json::Value = serde_json::from_str(include_str!("tests/images.json")).unwrap();
        let list = |name: &str| corpus[name].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned());
        let mut faults = Vec::new();
        let patterns = Patterns::compile_with(&list("patterns").collect::<Vec<_>>(), "images", &mut faults, pattern);
        assert!(faults.is_empty());
        let permits = |image: &str| canonical(image).is_some_and(|full| patterns.matches(&full));
        list("permitted").for_each(|image| assert!(permits(&image), "{image}"));
        list("refused").for_each(|image| assert!(!permits(&image), "{image}"));
        assert!(pattern("Registry.example.org/**").is_err() && pattern("spark:4.1-RC").is_ok());
    }
}
