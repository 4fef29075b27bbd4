//! Uploads the local files of a submission, and replaces their paths by references. spark-submit does this in cluster mode with
//! `spark.kubernetes.file.upload.path`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use futures::TryStreamExt;
use http::HeaderValue;
use indicatif::{ProgressBar, ProgressStyle};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Body;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::{fs::File, task::spawn_blocking};
use tokio_util::io::ReaderStream;

use super::request::Request;
use crate::{
    api::{Api, Call},
    clean,
    error::Error,
    screen::note,
};

/// Options whose values are lists of URIs.
const OPTIONS: [&str; 4] = ["jars", "py-files", "files", "archives"];
/// Properties whose values are such lists.
const LISTS: [&str; 4] = ["spark.jars", "spark.submit.pyFiles", "spark.files", "spark.archives"];
const NAMESPACE: &str = "spark.kubernetes.namespace";
/// Characters to escape in the name of a file.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The slowest connection on which an upload isn't given up, in bytes a second.
const SLOWEST: u64 = 64 << 10;
/// The piece in which a file is read.
const PIECE: usize = 256 << 10;
/// How an upload is shown on a terminal.
const SHOWN: &str = "uploading {msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

/// What became of the paths of a request.
pub(super) struct Uploaded {
    /// A local file is part of the request.
    pub(super) is_any: bool,
    /// The paths that name no file.
    pub(super) absent: Vec<String>,
}

/// Uploads each local file that the request names, unless the gateway has it, and replaces its path by a reference.
///
/// # Errors
/// A file can't be read; the gateway can't be reached or refuses it.
pub(super) async fn local_files(api: &Api, request: &mut Request) -> Result<Uploaded, Error> {
    let namespace = namespace(request);
    let Request { body, line } = request;
    let mut uploads = Uploads { api, namespace, references: BTreeMap::new(), absent: Vec::new() };
    if line.is_empty()
        && let Some(Value::String(resource)) = body.get_mut("appResource")
    {
        *resource = uploads.entry(resource).await?;
    }
    let (values, application) = line.values_mut();
    for (name, value) in values {
        match value.split_once('=').filter(|(key, _)| name == "conf" && LISTS.contains(key)) {
            Some((key, list)) => *value = format!("{key}={}", uploads.list(list).await?),
            None if OPTIONS.contains(&name.as_str()) => *value = uploads.list(value).await?,
            None => {}
        }
    }
    if let Some(application) = application {
        *application = uploads.entry(application).await?;
    }
    for key in LISTS {
        if let Some(Value::String(list)) =
            body.get_mut("sparkProperties").and_then(|properties| properties.get_mut(key))
        {
            *list = uploads.list(list).await?;
        }
    }
    Ok(Uploaded { is_any: !uploads.references.is_empty(), absent: uploads.absent })
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
    absent: Vec<String>,
}

impl Uploads<'_> {
    /// Returns a list of URIs in which references stand for local files.
    async fn list(&mut self, list: &str) -> Result<String, Error> {
        let mut entries = Vec::new();
        for entry in list.split(',') {
            entries.push(self.entry(entry).await?);
        }
        Ok(entries.join(","))
    }

    /// Returns the reference of a local file, with the fragment that the URI has. Other URIs, and paths without a file, are returned
    /// as they are: the gateway says what is wrong with them.
    async fn entry(&mut self, entry: &str) -> Result<String, Error> {
        let Some((path, fragment)) = local(entry.trim()) else {
            if !entry.trim().is_empty() && (!entry.contains(':') || entry.starts_with("file:")) {
                self.absent.push(entry.trim().to_owned());
            }
            return Ok(entry.to_owned());
        };
        let reference = match self.references.get(&path) {
            Some(reference) => reference.clone(),
            None => {
                let reference = self.upload(&path).await?;
                self.references.insert(path, reference.clone());
                reference
            }
        };
        Ok(format!("{reference}{fragment}"))
    }

    async fn upload(&self, path: &Path) -> Result<String, Error> {
        let here = |error: &dyn std::fmt::Display| Error::Here(format!("{}: {error}", path.display()));
        if path.is_dir() {
            return Err(here(&"it is a directory: pack it into a .zip or a .tar.gz"));
        }
        let hashed = spawn_blocking({
            let path = path.to_owned();
            move || digest(&path)
        });
        let (sha256, size) = hashed.await.map_err(|error| here(&error))?.map_err(|error| here(&error))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let shown = clean::line(&name);
        let reference = format!("sparkgate-file:/{sha256}/{}", utf8_percent_encode(&name, ESCAPED));
        let namespace = self.namespace.as_ref();
        let look = Call::head(format!("looking for {shown}"), &["files", &sha256]).query_if("namespace", namespace);
        // The gateway has answered before.
        let look = if self.references.is_empty() { look } else { look.through_restarts() };
        match self.api.send(&look).await {
            Ok(_) => return Ok(reference),
            Err(Error::Problem(problem)) if problem.status == 404 => {}
            Err(error) => return Err(error),
        }
        let put = Call::put(format!("uploading {shown}"), &["files", &sha256]).query_if("namespace", namespace);
        let put = put.header("content-length", HeaderValue::from(size)).longer_by(Duration::from_secs(size / SLOWEST));
        let started = Instant::now();
        let progress = progress(&shown, size);
        let uploaded = self
            .api
            .upload(&put.through_restarts(), async || {
                let file = File::open(path).await.map_err(|error| here(&error))?;
                progress.reset();
                let (pieces, progress) = (ReaderStream::with_capacity(file, PIECE), progress.clone());
                Ok(Body::wrap_stream(pieces.inspect_ok(move |piece| progress.inc(piece.len() as u64))))
            })
            .await;
        progress.finish_and_clear();
        uploaded?;
        note(&format!("uploaded {shown} ({}, {:.1}s)", readable(size), started.elapsed().as_secs_f64()));
        Ok(reference)
    }
}

/// Returns the progress of an upload, which is shown if standard error is a terminal.
fn progress(name: &str, size: u64) -> ProgressBar {
    let bar = ProgressBar::new(size).with_message(name.to_owned());
    match ProgressStyle::with_template(SHOWN) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

/// Returns the path of an entry that names a local file or directory, and its fragment with `#`.
fn local(entry: &str) -> Option<(PathBuf, &str)> {
    let path_of = |text: &str| match text.strip_prefix("file:") {
        // `file:/a`, `file:///a` and `file://localhost/a`; a URI has escapes, a path has none.
        Some(rest) => {
            let rest = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
            PathBuf::from(percent_decode_str(rest).decode_utf8_lossy().into_owned())
        }
        None => PathBuf::from(text),
    };
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

/// Returns the SHA-256 of a file in hex, and its size.
fn digest(path: &Path) -> std::io::Result<(String, u64)> {
    let mut file = std::fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut size = 0;
    loop {
        let read = std::io::Read::read(&mut file, &mut piece)?;
        if read == 0 {
            break;
        }
        hash.update(&piece[..read]);
        size += read as u64;
    }
    Ok((hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), size))
}

/// Returns a size for people.
fn readable(bytes: u64) -> String {
    for (unit, size) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= size {
            return format!("{:.1} {unit}", bytes as f64 / size as f64);
        }
    }
    format!("{bytes} bytes")
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

    #[test]
    fn digest_is_of_the_whole_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(file.path()).unwrap(), (abc.to_owned(), 3));
    }
}
