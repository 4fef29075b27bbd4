//! Lists of resources. Spark uploads what lies on the submitter's disk; there is no such disk here, so every entry must
//! be somewhere that the driver can reach.

use crate::spark::{Refusal, conf::SparkConf};

const LISTS: [&str; 4] = ["spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles"];
const UPLOAD_PATH: &str = "spark.kubernetes.file.upload.path";

/// Checks the four lists and writes them as Spark does: trimmed entries, no empty ones, and `spark.submit.pyFiles`
/// always present.
pub(super) fn resolve_all(conf: &mut SparkConf) -> Result<(), Refusal> {
    conf.set_if_missing("spark.submit.pyFiles", String::new);
    for key in LISTS.into_iter().filter(|key| conf.contains(key)).collect::<Vec<_>>() {
        let entries = conf.list(key);
        for entry in &entries {
            remote(&Refusal::property_field(key), entry).map_err(|refusal| explain_upload(conf, refusal))?;
        }
        conf.set(key, entries.join(","));
    }
    Ok(())
}

/// Refuses what Spark calls local and resolvable: a URI without a scheme, or with `file`. To Spark, text that isn't a
/// URI at all is the name of a local file.
pub(super) fn remote(field: &str, uri: &str) -> Result<(), Refusal> {
    let hint = match scheme(uri) {
        Some(scheme) if scheme.eq_ignore_ascii_case("file") => "",
        Some(_) if is_legal(uri) => return Ok(()),
        Some(_) => " (To Spark it is not a URI: write a space as %20.)",
        None => "",
    };
    Err(Refusal::field(
        field,
        format!(
            "Please specify {UPLOAD_PATH} property. But nothing here can upload `{uri}` from your disk: use local:// for \
             a file inside the image, or a URI that the driver can fetch (https, s3a, hdfs, …).{hint}"
        ),
    ))
}

/// Whether `java.net.URI` would take all characters.
fn is_legal(uri: &str) -> bool {
    uri.chars().all(|c| !c.is_whitespace() && !c.is_control() && !"\"<>\\^`{|}".contains(c))
}

/// With an upload path Spark would upload, so its sentence would mislead.
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
