//! References to images, in the form `registry/repository:tag@digest`.

use crate::pattern;

const HUB: &str = "docker.io";

/// Returns a reference in its full form: `spark:4.1.0` is `docker.io/library/spark:4.1.0`, and a reference without tag and digest
/// has the tag `latest` (<https://pkg.go.dev/github.com/distribution/reference>). A digest determines the image, so the tag beside
/// it is dropped. `None` for what isn't a reference.
pub(crate) fn canonical(reference: &str) -> Option<String> {
    let (rest, digest) = match reference.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (reference, None),
    };
    let (name, tag) = split_tag(rest);
    let name = full_name(name);
    let (domain, repository) = name.split_once('/')?;
    let is_domain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let is_repository = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '/');
    let is_tag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_digest = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '+' | '.' | '_' | '-');
    let valid = !domain.is_empty()
        && domain.chars().all(is_domain)
        && repository.chars().all(is_repository)
        && repository.split('/').all(|part| part.starts_with(|c: char| c.is_ascii_alphanumeric()))
        && tag.is_none_or(|tag| !tag.is_empty() && tag.chars().all(is_tag))
        && digest.is_none_or(|digest| digest.contains(':') && digest.chars().all(is_digest));
    if !valid {
        return None;
    }
    let domain = domain.to_ascii_lowercase();
    Some(match (digest, tag) {
        (Some(digest), _) => format!("{domain}/{repository}@{digest}"),
        (None, tag) => format!("{domain}/{repository}:{}", tag.unwrap_or("latest")),
    })
}

/// Returns a pattern for images as a regular expression for full references.
pub(crate) fn pattern(pattern: &str) -> Result<String, String> {
    let (rest, digest) = match pattern.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (pattern, None),
    };
    let (name, tag) = split_tag(rest);
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
        Some((domain, _))
            if domain.contains(['.', ':', '*']) || domain == "localhost" || domain != domain.to_lowercase() =>
        {
            name.to_owned()
        }
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
        assert_eq!(canonical("Registry.example.org:5000/a").as_deref(), Some("registry.example.org:5000/a:latest"));
        for wrong in ["", " spark", "spark:", "a b", "spark@x", "SPARK", "a//b", "http://a/b", "a:b:c", "${env:X}"] {
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
}
