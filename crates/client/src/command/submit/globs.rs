//! Globs in lists of local files, `lib/*.jar`: spark-submit expands them as Hadoop does.

use std::path::Path;

use glob::glob;

use super::local::{local, path_of};

/// Returns the entries that an entry of a list stands for: the files that a glob matches, in the order of their names, each with the
/// fragment of the glob; otherwise, the entry itself.
///
/// # Errors
/// A glob matches no file, or a glob with a fragment matches several.
pub(super) fn expanded(entry: &str) -> Result<Vec<String>, String> {
    let text = entry.trim();
    let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| scheme != "file" && !scheme.contains('/'));
    // The driver expands those of other schemes itself, and a file may have such a name.
    if has_scheme || !text.contains(['*', '?', '[', '{']) || local(text).is_some() {
        return Ok(vec![entry.to_owned()]);
    }
    let (pattern, fragment) = text.rfind('#').map_or((text, ""), |at| text.split_at(at));
    let path = path_of(pattern);
    let mut found = Vec::new();
    for pattern in alternatives(&path.to_string_lossy())? {
        // Hadoop negates a class as a regular expression does.
        let pattern = pattern.replace("[^", "[!");
        let paths = glob(&pattern).map_err(|error| format!("{text}: {error}"))?;
        for path in paths {
            found.push(path.map_err(|error| format!("{text}: {error}"))?);
        }
    }
    found.sort();
    found.dedup();
    match found.len() {
        0 => Err(format!("{text}: no file matches")),
        count if count > 1 && !fragment.is_empty() => {
            Err(format!("{text}: {count} files match, and only one can have the name after #"))
        }
        _ => Ok(found.iter().map(|path| format!("{}{fragment}", uri_of(path))).collect()),
    }
}

/// Returns a path as an entry of a list. One with characters that have a meaning there is a URI with escapes.
fn uri_of(path: &Path) -> String {
    let text = path.to_string_lossy();
    if !text.contains([',', '#', ':', '%']) {
        return text.into_owned();
    }
    let escaped = |text: &str| text.replace('%', "%25").replace(',', "%2C").replace('#', "%23").replace(':', "%3A");
    format!("file:{}", escaped(&text))
}

/// Returns the patterns that a pattern with alternatives, `{a,b}`, stands for.
///
/// # Errors
/// A brace isn't closed.
fn alternatives(pattern: &str) -> Result<Vec<String>, String> {
    let Some(open) = pattern.find('{') else { return Ok(vec![pattern.to_owned()]) };
    let (mut depth, mut from, mut parts) = (0, open + 1, Vec::new());
    for (at, c) in pattern.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            ',' if depth == 1 => {
                parts.push(&pattern[from..at]);
                from = at + 1;
            }
            '}' if depth == 1 => {
                parts.push(&pattern[from..at]);
                let mut all = Vec::new();
                for part in parts {
                    all.extend(alternatives(&format!("{}{part}{}", &pattern[..open], &pattern[at + 1..]))?);
                }
                return Ok(all);
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    Err(format!("{pattern}: the brace isn't closed"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_glob_stands_for_the_files_that_it_matches() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("lib")).unwrap();
        for name in ["lib/b.jar", "lib/a.jar", "lib/.c.jar", "lib/x.zip", "lib/[1].txt", "lib/p#q.egg"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let root = dir.path().to_str().unwrap();
        let of = |pattern: &str| {
            let found = expanded(&format!("{root}/{pattern}"))?;
            Ok::<_, String>(found.iter().map(|path| path.replace(&format!("{root}/"), "")).collect::<Vec<_>>())
        };
        assert_eq!(
            of("lib/*.jar").unwrap(),
            ["lib/.c.jar", "lib/a.jar", "lib/b.jar"],
            "sorted, hidden ones too, as in Hadoop"
        );
        assert_eq!(of("*/[ab].jar").unwrap(), ["lib/a.jar", "lib/b.jar"]);
        assert_eq!(of("lib/[^a].jar").unwrap(), ["lib/b.jar"]);
        assert_eq!(of("lib/{a,x}.{jar,zip}").unwrap(), ["lib/a.jar", "lib/x.zip"]);
        assert_eq!(of("lib/?.zip#env").unwrap(), ["lib/x.zip#env"]);
        assert_eq!(of("lib/[1].txt").unwrap(), ["lib/[1].txt"], "a file of this name is itself");
        assert_eq!(of("lib/*.egg").unwrap(), ["file:lib/p%23q.egg"]);
        assert!(of("lib/*.jar#env").unwrap_err().contains("3 files match"));
        assert!(of("lib/*.whl").unwrap_err().contains("no file matches"));
        assert!(of("lib/{a,b.jar").unwrap_err().contains("brace"));
        for other in ["", "s3a://b/*.jar", "local:///opt/*.jar", "https://h/?x", "plain.jar"] {
            assert_eq!(expanded(other).unwrap(), [other]);
        }
        let uri = expanded(&format!("file://{root}/lib/a*.jar")).unwrap();
        assert_eq!(uri, [format!("{root}/lib/a.jar")]);
    }
}
