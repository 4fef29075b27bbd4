//! Uploads the local files of a submission, and replaces their paths by references. spark-submit does this in cluster mode with
//! `spark.kubernetes.file.upload.path`.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::Value;

use super::{globs, local::local, request::Request};
use crate::{
    api::Api,
    clean,
    error::Error,
    upload::{self, Sent},
};

/// Options whose values are lists of URIs.
const OPTIONS: [&str; 4] = ["jars", "py-files", "files", "archives"];
/// Properties whose values are such lists.
const LISTS: [&str; 4] = ["spark.jars", "spark.submit.pyFiles", "spark.files", "spark.archives"];
const NAMESPACE: &str = "spark.kubernetes.namespace";
/// Spark's own names for an application without a file.
const NO_FILES: [&str; 4] = ["spark-internal", "spark-shell", "pyspark-shell", "sparkr-shell"];

/// Uploads each local file that the request names, unless the gateway has it, and replaces its path by a reference. Returns whether a
/// local file is part of the request.
///
/// # Errors
/// A file doesn't exist or can't be read; the gateway can't be reached or refuses it.
pub(super) async fn local_files(api: &Api, request: &mut Request) -> Result<bool, Error> {
    let namespace = namespace(request);
    let Request { body, line } = request;
    let mut uploads = Uploads { api, namespace, references: BTreeMap::new() };
    if line.is_empty()
        && let Some(Value::String(resource)) = body.get_mut("appResource")
    {
        *resource = uploads.entry(resource).await?;
    }
    let (values, application) = line.values_mut();
    // First, because it is the one that is misspelt.
    if let Some(application) = application {
        *application = uploads.entry(application).await?;
    }
    for (name, value) in values {
        match value.split_once('=').filter(|(key, _)| name == "conf" && LISTS.contains(key)) {
            Some((key, list)) => *value = format!("{key}={}", uploads.list(list).await?),
            None if OPTIONS.contains(&name.as_str()) => *value = uploads.list(value).await?,
            None => {}
        }
    }
    for key in LISTS {
        if let Some(Value::String(list)) =
            body.get_mut("sparkProperties").and_then(|properties| properties.get_mut(key))
        {
            *list = uploads.list(list).await?;
        }
    }
    Ok(!uploads.references.is_empty())
}

/// Returns the namespace that the submission names: it selects the tenant.
fn namespace(request: &mut Request) -> Option<String> {
    let (values, _) = request.line.values_mut();
    let conf = values.into_iter().filter(|(name, _)| name == "conf");
    let of_line = conf.filter_map(|(_, value)| Some(value.strip_prefix(NAMESPACE)?.strip_prefix('=')?.to_owned()));
    of_line.last().or_else(|| request.body["sparkProperties"][NAMESPACE].as_str().map(str::to_owned))
}

struct Uploads<'a> {
    api: &'a Api,
    namespace: Option<String>,
    /// The references of the files that were uploaded already.
    references: BTreeMap<PathBuf, String>,
}

impl Uploads<'_> {
    /// Returns a list of URIs in which references stand for local files.
    async fn list(&mut self, list: &str) -> Result<String, Error> {
        let mut entries = Vec::new();
        for entry in list.split(',') {
            for entry in globs::expanded(entry).map_err(Error::Here)? {
                entries.push(self.entry(&entry).await?);
            }
        }
        Ok(entries.join(","))
    }

    /// Returns the reference of a local file, with the fragment that the URI has. Other URIs are returned as they are.
    async fn entry(&mut self, entry: &str) -> Result<String, Error> {
        let Some((path, fragment)) = local(entry.trim()) else {
            let name = entry.trim();
            let is_path = !name.is_empty() && (!name.contains(':') || name.starts_with("file:"));
            if is_path && !NO_FILES.contains(&name) {
                return Err(Error::NoFile(clean::line(name).into_owned()));
            }
            return Ok(entry.to_owned());
        };
        let reference = match self.references.get(&path) {
            Some(reference) => reference.clone(),
            None => {
                // After the first file, the gateway has answered before.
                let is_patient = !self.references.is_empty();
                let Sent { reference, .. } =
                    upload::file(self.api, &path, self.namespace.as_deref(), is_patient).await?;
                self.references.insert(path, reference.clone());
                reference
            }
        };
        Ok(format!("{reference}{fragment}"))
    }
}
