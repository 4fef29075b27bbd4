//! Lists of resources. Spark uploads files from the submitter's disk; the gateway can't read that disk, so every entry must be
//! a URI that the driver can fetch.

use crate::{conf::SparkConf, refusal::Refusal};

const LISTS: [&str; 4] = ["spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles"];
const UPLOAD_PATH: &str = "spark.kubernetes.file.upload.path";

/// Checks the four lists and writes them as Spark does: entries are trimmed, empty ones dropped, and `spark.submit.pyFiles` is
/// always set. Globs are left to the driver, which expands them again in any case.
pub(super) fn resolve_all(conf: &mut SparkConf) -> Result<(), Refusal> {
    conf.set_if_missing("spark.submit.pyFiles", String::new);
    for key in LISTS.into_iter().filter(|key| conf.contains(key)).collect::<Vec<_>>() {
        let entries = conf.list(key);
        for entry in &entries {
            entry_is_remote(&Refusal::property_field(key), entry).map_err(|refusal| explain_upload(conf, refusal))?;
        }
        conf.set(key, entries.join(","));
    }
    Ok(())
}

/// Returns the value of an option such as `--jars` (`Utils.resolveURIs`): entries are *not* trimmed, blank ones are dropped.
pub(super) fn resolve_option(field: &str, list: &str) -> Result<String, Refusal> {
    let entries: Vec<&str> = list.split(',').filter(|entry| !entry.trim().is_empty()).collect();
    for entry in &entries {
        entry_is_remote(field, entry)?;
    }
    Ok(entries.join(","))
}

/// Refuses a URI that Spark calls local and resolvable: one without a scheme, or with `file`. Spark takes text that isn't a URI
/// at all for the name of a local file.
pub(super) fn remote(field: &str, uri: &str) -> Result<(), Refusal> {
    let hint = match scheme(uri) {
        Some(scheme) if scheme.eq_ignore_ascii_case("file") => "",
        Some(_) if is_legal(uri) => return Ok(()),
        Some(_) => NOT_A_URI,
        None => "",
    };
    Err(Refusal::field(
        field,
        format!(
            "Please specify {UPLOAD_PATH} property. But nothing here can upload `{uri}` from your disk: use local:// for \
             a file inside the image, or a URI that the driver can fetch (https, s3a, hdfs, …), or upload the file before, as \
             `sparkgate submit` does.{hint}"
        ),
    ))
}

const NOT_A_URI: &str = " (To Spark it is not a URI: write a space as %20.)";

/// Schemes that Spark handles itself, in this spelling only.
const KNOWN: [&str; 5] = ["local", "file", "http", "https", "ftp"];

fn is_shouted(scheme: &str, known: &str) -> bool {
    scheme != known && scheme.eq_ignore_ascii_case(known)
}

/// Does the same as [`remote`] for an entry of a list. For a list, Spark searches a local file of that name, beginning with the
/// name of its first folder, and fails on the colon in that name.
fn entry_is_remote(field: &str, entry: &str) -> Result<(), Refusal> {
    if let Some(odd) = scheme(entry).filter(|scheme| KNOWN.iter().any(|known| is_shouted(scheme, known))) {
        return Err(Refusal::field(field, format!("No FileSystem for scheme \"{odd}\": write it in lower case.")));
    }
    let folder = entry.split('/').next().unwrap_or(entry);
    match folder.strip_suffix(':') {
        Some(scheme_like) if !is_legal(entry) => {
            let cause = match scheme(folder) {
                Some(_) => format!("Expected scheme-specific part at index {}: {folder}", folder.len()),
                None if scheme_like.starts_with(char::is_alphabetic) => return remote(field, entry),
                None => format!("Illegal character in scheme name at index 0: {folder}"),
            };
            Err(Refusal::field(field, format!("`{entry}`: java.net.URISyntaxException: {cause}{NOT_A_URI}")))
        }
        _ => remote(field, entry),
    }
}

/// Returns whether `java.net.URI` would accept a text: RFC 2396 plus letters outside ASCII.
fn is_legal(uri: &str) -> bool {
    let (rest, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    let after_scheme = rest.split_once(':').map_or("", |(_, after)| after);
    let before_query = after_scheme.split('?').next().unwrap_or(after_scheme);
    // Brackets may enclose an IPv6 address.
    let path = match before_query.strip_prefix("//") {
        Some(authority) => authority.find('/').map_or("", |at| &authority[at..]),
        None => before_query,
    };
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"<>\\^`{|}".contains(c);
    uri.chars().all(plain)
        && !fragment.contains('#')
        && !path.contains(['[', ']'])
        && !matches!(after_scheme, "" | "//")
        && escapes_are_whole(uri)
}

/// Returns whether every `%` is followed by two hexadecimal digits.
fn escapes_are_whole(uri: &str) -> bool {
    uri.split('%').skip(1).all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}

/// Removes Spark's sentence if there is an upload path: Spark would then upload, so the sentence would mislead.
fn explain_upload(conf: &SparkConf, mut refusal: Refusal) -> Refusal {
    if conf.contains(UPLOAD_PATH) {
        let hint = refusal.reason.find("nothing here").map(|at| refusal.reason[at..].to_owned());
        refusal.reason = hint.map_or(refusal.reason, |hint| hint.replacen('n', "N", 1));
    }
    refusal
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let mut chars = scheme.chars();
    let begins = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    (begins && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))).then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_that_java_accepts_is_remote() {
        for good in
            ["local:///a.jar", "https://h/a?x=[1]#f", "s3a://b/ä%20.jar", "hdfs://[::1]:8020/a", "local:/a/*.jar"]
        {
            assert_eq!(entry_is_remote("f", good), Ok(()), "{good}");
        }
        for (bad, sentence) in [
            ("/a.jar", "Please specify"),
            ("file:///a.jar", "Please specify"),
            ("a b.jar", "Please specify"),
            ("local:///a b.jar", "Expected scheme-specific part at index 6: local:"),
            ("local:///a%zz.jar", "Expected scheme-specific part at index 6: local:"),
            ("local:///a#b#c", "Expected scheme-specific part at index 6: local:"),
            ("https://", "Expected scheme-specific part at index 6: https:"),
            ("Local:///a.jar", "No FileSystem for scheme \"Local\""),
            (" local:///a.jar", "Illegal character in scheme name at index 0:  local:"),
        ] {
            let refusal = entry_is_remote("f", bad).unwrap_err();
            assert!(refusal.reason.contains(sentence), "{bad}: {refusal}");
        }
    }
}
