//! References to uploaded files: `sparkgate-file:/<SHA-256>/<name>`, wherever Spark takes a URI.
//!
//! The name is that under which the driver gets the file. References are stored with a submission; each launch replaces them by
//! signed URLs, so a URL is never older than its driver.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};

use sparkgate_cluster::Manifest;
use sparkgate_spark::{CreateSubmissionRequest, Refusal};

/// The scheme of references.
pub(super) const SCHEME: &str = "sparkgate-file";
/// Length of a SHA-256 in hex.
const DIGITS: usize = 64;
/// The longest name of a file, as in most file systems.
const NAME_MAX: usize = 255;
/// Properties that are lists of URIs which the driver fetches.
const LISTS: [&str; 4] = ["spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles"];

/// Characters to escape in the name of a file.
pub(super) const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'+').remove(b'@');

/// Returns whether the text is a SHA-256 in lower-case hex.
pub fn is_sha256(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether the text can be the name of a file in a URL, with other characters escaped by `%`. A name is written unchanged
/// into a file of properties and into JSON, so it has no character that either of them escapes.
pub(super) fn is_name(text: &str) -> bool {
    let decoded = percent_decode_str(text).collect::<Vec<u8>>();
    // What a client or a store would take for a path.
    let is_path =
        matches!(&*decoded, b"" | b"." | b"..") || decoded.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0));
    (1..=NAME_MAX).contains(&text.len()) && !is_path && text.chars().all(is_of_name)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '%' | '+' | '@')
}

/// Returns the SHA-256 of all files that a request refers to, each with its name there.
///
/// # Errors
/// A [`Refusal`] that names the field with a malformed reference.
pub(super) fn in_request(request: &CreateSubmissionRequest) -> Result<BTreeMap<String, String>, Refusal> {
    let mut files = BTreeMap::new();
    let resource = [(None, request.app_resource.as_str())];
    let lists = LISTS.into_iter().filter_map(|key| Some((Some(key), request.spark_properties.get(key)?.as_str())));
    for (key, list) in resource.into_iter().chain(lists) {
        for entry in list.split(',').map(str::trim) {
            let Some(rest) = entry.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix(':')) else { continue };
            let (path, _) = rest.split_once('#').unwrap_or((rest, ""));
            let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
            let Some((sha256, name)) = parts.filter(|(sha256, name)| is_sha256(sha256) && is_name(name)) else {
                let reason = format!(
                    "`{entry}` is no reference to an uploaded file: it looks like {SCHEME}:/<SHA-256 in hex>/<name>, where the \
                     name has letters, digits and . _ - ~ + @, and other characters as %20"
                );
                return Err(match key {
                    Some(key) => Refusal::property(key, reason),
                    None => Refusal::field("appResource", reason),
                });
            };
            files.insert(sha256.to_owned(), percent_decode_str(name).decode_utf8_lossy().into_owned());
        }
    }
    Ok(files)
}

/// Returns whether the objects of an attempt may contain references.
pub(super) fn is_in_objects(manifest: &Manifest) -> bool {
    let Manifest { before, pod, beside, .. } = manifest;
    before.iter().chain([pod]).chain(beside).any(|object| object.get().contains(SCHEME))
}

/// Returns the names of the files of a form in a text: `sparkgate-file:<name>`, without the `/` of other references.
pub(super) fn names_of_form(text: &str) -> impl Iterator<Item = &str> {
    let names = text.match_indices(SCHEME).filter_map(|(at, _)| text[at + SCHEME.len()..].strip_prefix(':'));
    names.filter(|rest| !rest.starts_with('/')).map(name_at)
}

/// Returns a text in which the references to files of a form are replaced by those that `reference` returns for their names; `None` if
/// there is none.
pub(super) fn with_references(text: &str, reference: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut written = String::new();
    let mut rest = text;
    let mut is_changed = false;
    while let Some(at) = rest.find(SCHEME) {
        let (before, from) = rest.split_at(at);
        let after = &from[SCHEME.len()..];
        written.push_str(before);
        let name = after.strip_prefix(':').filter(|rest| !rest.starts_with('/')).map(name_at);
        rest = match name.and_then(|name| Some((name, reference(name)?))) {
            Some((name, reference)) => {
                is_changed = true;
                written.push_str(&reference);
                &after[1 + name.len()..]
            }
            None => {
                written.push_str(SCHEME);
                after
            }
        };
    }
    written.push_str(rest);
    is_changed.then_some(written)
}

/// Returns the name at the beginning of a text.
fn name_at(text: &str) -> &str {
    &text[..text.find(|c| !is_of_name(c)).unwrap_or(text.len())]
}

/// Returns a text of JSON in which each reference to one of the files is replaced by the URL that `url` returns for its SHA-256 and
/// its name; `None` if there is none. References in a file of properties have an escaped colon, and so do their URLs.
pub(super) fn replaced(json: &str, mut url: impl FnMut(&str, &str) -> Option<String>) -> Option<String> {
    /// A backslash of a file of properties, in JSON.
    const ESCAPE: &str = "\\\\";
    let mut text = String::new();
    let mut rest = json;
    let mut is_changed = false;
    while let Some(at) = rest.find(SCHEME) {
        let (before, from) = rest.split_at(at);
        let after = &from[SCHEME.len()..];
        let unescaped = after.strip_prefix(ESCAPE);
        let found = unescaped.unwrap_or(after).strip_prefix(":/").and_then(|path| {
            let (sha256, name) = path.split_once('/').filter(|(sha256, _)| is_sha256(sha256))?;
            let name = name_at(name);
            let url = url(sha256, name).filter(|_| is_name(name))?;
            Some((url, &path[DIGITS + 1 + name.len()..]))
        });
        text.push_str(before);
        match found {
            Some((url, remaining)) => {
                is_changed = true;
                match unescaped {
                    Some(_) => text.push_str(&url.replace(':', &format!("{ESCAPE}:"))),
                    None => text.push_str(&url),
                }
                rest = remaining;
            }
            None => {
                text.push_str(SCHEME);
                rest = after;
            }
        }
    }
    text.push_str(rest);
    is_changed.then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn request(resource: &str, key: &str, list: &str) -> CreateSubmissionRequest {
        let mut request = CreateSubmissionRequest { app_resource: resource.to_owned(), ..Default::default() };
        request.spark_properties.insert(key.to_owned(), list.to_owned());
        request
    }

    #[test]
    fn references_of_a_request_are_found_in_all_places_that_spark_fetches() {
        let list = format!("local:///x.zip, sparkgate-file:/{B}/env.tar.gz#env ,s3a://b/y.zip");
        for key in LISTS {
            let request = request(&format!("sparkgate-file:/{A}/job%20one.py"), key, &list);
            let named =
                [(A, "job one.py"), (B, "env.tar.gz")].map(|(sha256, name)| (sha256.to_owned(), name.to_owned()));
            assert_eq!(in_request(&request).unwrap(), named.into(), "{key}");
        }
        assert_eq!(in_request(&request("local:///a.jar", "spark.x", &list)), Ok(BTreeMap::new()));
    }

    #[test]
    fn a_malformed_reference_is_refused_with_its_field() {
        let upper = A.to_uppercase();
        for bad in [
            String::new(),
            format!("/{A}"),
            format!("/{A}/"),
            format!("/{A}/.."),
            format!("/{A}/%2e%2E"),
            format!("/{A}/.%2e"),
            format!("/{A}/%2e"),
            format!("/{A}/a%2fb"),
            format!("/{A}/%2e%2e%2Fb"),
            format!("/{A}/a%5cb"),
            format!("/{A}/a%00"),
            format!("/{A}/a/b"),
            format!("/{A}/a=b"),
            format!("/{A}/ä"),
            format!("{A}/a"),
            format!("//{A}/a"),
            format!("/{upper}/a"),
            format!("/{}/a", &A[1..]),
            format!("/{A}/{}", "n".repeat(256)),
        ] {
            let refusal = in_request(&request(&format!("{SCHEME}:{bad}"), "spark.jars", "")).unwrap_err();
            assert_eq!(refusal.field, "appResource", "{bad}");
            let refusal = in_request(&request("", "spark.jars", &format!("local:///a,{SCHEME}:{bad}"))).unwrap_err();
            assert_eq!(refusal.field, "sparkProperties[\"spark.jars\"]", "{bad}");
        }
    }

    #[test]
    fn references_become_urls_in_arguments_and_in_properties() {
        let url =
            |sha256: &str, name: &str| (sha256 == A).then(|| format!("http://gateway:6066/{}/{name}", &sha256[..2]));
        let object = json!({
            "args": [format!("{SCHEME}:/{A}/job.py"), format!("{SCHEME}:/{B}/other.py"), SCHEME, format!("{SCHEME}:/x/y")],
            "data": {"spark.properties": format!("spark.jars={SCHEME}\\:/{A}/a.jar,{SCHEME}\\:/{A}/b%20c.jar\\#d\nspark.x=1\n")},
        });
        let text = replaced(&object.to_string(), url).unwrap();
        let replaced_object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            replaced_object,
            json!({
                "args": ["http://gateway:6066/aa/job.py", format!("{SCHEME}:/{B}/other.py"), SCHEME, format!("{SCHEME}:/x/y")],
                "data": {"spark.properties": "spark.jars=http\\://gateway\\:6066/aa/a.jar,http\\://gateway\\:6066/aa/b%20c.jar\\#d\nspark.x=1\n"},
            })
        );
        assert_eq!(replaced(&json!({"args": ["local:///a.py"]}).to_string(), url), None);
    }
}
