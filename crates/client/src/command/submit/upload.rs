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
    let mut parts = parts(request);
    // All of them, before the first is sent.
    for Part { uris, .. } in &parts {
        for entry in entries(uris)? {
            check(&entry)?;
        }
    }
    let mut uploads = Uploads { api, namespace, references: BTreeMap::new() };
    for Part { text, before, uris } in &mut parts {
        **text = format!("{before}{}", uploads.list(uris).await?);
    }
    Ok(!uploads.references.is_empty())
}

/// A text of a request that has URIs.
struct Part<'a> {
    text: &'a mut String,
    /// What is before the URIs.
    before: String,
    uris: String,
}

impl<'a> Part<'a> {
    fn new(text: &'a mut String, before: usize) -> Self {
        let (before, uris) = text.split_at(before);
        Self { before: before.to_owned(), uris: uris.to_owned(), text }
    }
}

/// Returns the texts of a request that may name local files. The application comes first, because it is the one that is misspelt.
fn parts(request: &mut Request) -> Vec<Part<'_>> {
    let Request { body, line } = request;
    let (mut parts, is_without_line) = (Vec::new(), line.is_empty());
    let Some(body) = body.as_object_mut() else { return parts };
    let (mut resource, mut lists) = (None, Vec::new());
    for (name, value) in body {
        match value {
            Value::String(text) if name == "appResource" => resource = Some(text),
            Value::Object(properties) if name == "sparkProperties" => {
                lists.extend(properties.iter_mut().filter(|(key, _)| LISTS.contains(&key.as_str())));
            }
            _ => {}
        }
    }
    parts.extend(resource.filter(|_| is_without_line).map(|resource| Part::new(resource, 0)));
    let (values, application) = line.values_mut();
    parts.extend(application.map(|application| Part::new(application, 0)));
    for (name, value) in values {
        let key = value.split_once('=').map(|(key, _)| key).filter(|key| name == "conf" && LISTS.contains(key));
        match key.map(|key| key.len() + 1) {
            Some(before) => parts.push(Part::new(value, before)),
            None if OPTIONS.contains(&name.as_str()) => parts.push(Part::new(value, 0)),
            None => {}
        }
    }
    for (_, list) in lists {
        if let Value::String(list) = list {
            parts.push(Part::new(list, 0));
        }
    }
    parts
}

/// Returns the URIs of a list, with globs expanded.
fn entries(list: &str) -> Result<Vec<String>, Error> {
    let mut entries = Vec::new();
    for entry in list.split(',') {
        entries.extend(globs::expanded(entry).map_err(Error::Here)?);
    }
    Ok(entries)
}

/// Checks that a URI which names a file of this machine names one that exists.
fn check(entry: &str) -> Result<(), Error> {
    let name = entry.trim();
    let is_path = !name.is_empty() && (!name.contains(':') || name.starts_with("file:"));
    if local(name).is_none() && is_path && !NO_FILES.contains(&name) {
        return Err(Error::NoFile(clean::line(name).into_owned()));
    }
    Ok(())
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
        let mut references = Vec::new();
        for entry in entries(list)? {
            references.push(self.entry(&entry).await?);
        }
        Ok(references.join(","))
    }

    /// Returns the reference of a local file, with the fragment that the URI has. Other URIs are returned as they are.
    async fn entry(&mut self, entry: &str) -> Result<String, Error> {
        let Some((path, fragment)) = local(entry.trim()) else { return Ok(entry.to_owned()) };
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
