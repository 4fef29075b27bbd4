//! The local files that entries of lists name.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// Returns the path that an entry without a fragment names.
pub(super) fn path_of(text: &str) -> PathBuf {
    match text.strip_prefix("file:") {
        // `file:/a`, `file:///a` and `file://localhost/a`; a URI has escapes, a path has none.
        Some(rest) => {
            let rest = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
            PathBuf::from(percent_decode_str(rest).decode_utf8_lossy().into_owned())
        }
        None => PathBuf::from(text),
    }
}

/// Returns the path of an entry that names a local file or directory, and its fragment with `#`.
pub(super) fn local(entry: &str) -> Option<(PathBuf, &str)> {
    if entry.is_empty() {
        return None;
    }
    let whole = path_of(entry);
    if whole.exists() {
        return Some((whole, ""));
    }
    let at = entry.rfind('#')?;
    let path = path_of(&entry[..at]);
    (at > 0 && path.exists()).then_some((path, &entry[at..]))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_existing_files_are_local() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("env.tar.gz"), "x").unwrap();
        fs::write(path("a b.py"), "x").unwrap();
        let env = path("env.tar.gz");
        let text = env.to_str().unwrap();
        assert_eq!(local(text), Some((env.clone(), "")));
        assert_eq!(local(&format!("{text}#env")), Some((env.clone(), "#env")));
        for scheme in ["file:", "file://", "file://localhost"] {
            assert_eq!(local(&format!("{scheme}{text}#env")), Some((env.clone(), "#env")), "{scheme}");
        }
        assert_eq!(local(&format!("file://{}/a%20b.py", dir.path().display())), Some((path("a b.py"), "")));
        for other in ["", "local:///a.jar", "s3a://b/a.jar", "no-such-file.py", "#", "spark-internal"] {
            assert_eq!(local(other), None, "{other}");
        }
    }
}
