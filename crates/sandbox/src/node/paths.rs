//! Translates paths inside a container to paths on this machine.
//!
//! Nothing is mounted here. So a path below a mount, or below the image's `/opt/spark`, is rewritten wherever a pod names it:
//! in arguments, in the environment and in `spark.properties`.

use std::path::Path;

/// Pairs of container path and path on this machine, the longest container path first.
#[derive(Debug, Default, Clone)]
pub(super) struct PathMap(Vec<(String, String)>);

impl PathMap {
    /// Adds a pair. A mount at `/` is ignored: rewriting every absolute path would break those of this machine.
    pub(super) fn insert(&mut self, container: &str, here: &Path) {
        let container = container.trim_end_matches('/');
        if !container.starts_with('/') {
            return;
        }
        self.0.retain(|(known, _)| known != container);
        self.0.push((container.to_owned(), here.to_string_lossy().into_owned()));
        self.0.sort_by_key(|(container, _)| std::cmp::Reverse(container.len()));
    }

    /// Rewrites every known path in a text: a plain path, a `local:` or `file:` URI, a class path, a comma list or a Java
    /// option. URIs of other schemes are not changed.
    pub(super) fn translate(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(found) = text[at..].find('/') {
            let slash = at + found;
            out.push_str(&text[at..slash]);
            match self.longest_match(text, slash) {
                Some((container, here)) => {
                    out.push_str(here);
                    at = slash + container.len();
                }
                None => {
                    out.push('/');
                    at = slash + 1;
                }
            }
        }
        out.push_str(&text[at..]);
        out
    }

    fn longest_match(&self, text: &str, slash: usize) -> Option<&(String, String)> {
        let rest = &text[slash..];
        let pair = self.0.iter().find(|(container, _)| {
            rest.strip_prefix(container.as_str()).is_some_and(|tail| !tail.starts_with(is_name_char))
        })?;
        starts_a_path(&text[..slash]).then_some(pair)
    }
}

/// Returns whether a character continues a file name, so that `/opt/spark` isn't found in `/opt/spark-3` or `/opt/spark.old`.
fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || "-_.+~%".contains(c)
}

fn ends_a_word(c: char) -> bool {
    c.is_whitespace() || ",;='\"()[]{}<>|&@".contains(c)
}

/// Returns whether an absolute path may begin right after `before`.
fn starts_a_path(before: &str) -> bool {
    let Some(last) = before.chars().next_back() else { return true };
    if ends_a_word(last) {
        return true;
    }
    let Some(head) = before.strip_suffix("://").or_else(|| before.strip_suffix(':')) else { return false };
    let word = head.rsplit(|c| ends_a_word(c) || c == ':').next().unwrap_or_default();
    // Without a scheme before it, the colon separates the entries of a class path.
    let scheme = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(|c| c.is_ascii_alphanumeric());
    !scheme || matches!(word, "local" | "file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> PathMap {
        let mut map = PathMap::default();
        map.insert("/opt/spark", Path::new("/home/a/pyspark"));
        map.insert("/opt/spark/conf/", Path::new("/pods/1/conf"));
        map.insert("/", Path::new("/nowhere"));
        map
    }

    #[test]
    fn the_longest_mount_path_wins() {
        assert_eq!(map().translate("/opt/spark/conf/spark.properties"), "/pods/1/conf/spark.properties");
        assert_eq!(map().translate("/opt/spark"), "/home/a/pyspark");
        assert_eq!(map().translate("/opt/spark/conf"), "/pods/1/conf");
    }

    #[test]
    fn paths_inside_other_text_are_translated() {
        assert_eq!(map().translate("local:///opt/spark/pi.py"), "local:///home/a/pyspark/pi.py");
        assert_eq!(map().translate("file:/opt/spark/pi.py#x"), "file:/home/a/pyspark/pi.py#x");
        assert_eq!(map().translate("a/b.jar:/opt/spark/jars/*:/x"), "a/b.jar:/home/a/pyspark/jars/*:/x");
        assert_eq!(
            map().translate("-Dx=/opt/spark/conf/l -Dy='/opt/spark'"),
            "-Dx=/pods/1/conf/l -Dy='/home/a/pyspark'"
        );
        assert_eq!(map().translate("local:///opt/spark/a,/opt/spark/b"), "local:///home/a/pyspark/a,/home/a/pyspark/b");
    }

    #[test]
    fn text_that_only_resembles_a_path_is_not_changed() {
        for text in [
            "/opt/spark-3.5/jars",
            "/opt/spark.old",
            "/data/opt/spark",
            "s3a://bucket/opt/spark/x",
            "hdfs:///opt/spark/x",
            "hdfs:/opt/spark/x",
            "https://opt/spark",
            "plain text",
            "",
            "größe=/optional",
        ] {
            assert_eq!(map().translate(text), text);
        }
    }
}
