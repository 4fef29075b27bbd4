//! Uploads a local file.

use std::{
    io::SeekFrom,
    path::Path,
    time::{Duration, Instant},
};

use futures::TryStreamExt;
use http::HeaderValue;
use indicatif::{ProgressBar, ProgressStyle};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Body;
use sha2::{Digest, Sha256};
use tokio::{fs::File, io::AsyncSeekExt, task::spawn_blocking};
use tokio_util::io::ReaderStream;

use super::{
    api::{Api, Call},
    clean,
    error::Error,
    screen::note,
};

/// Characters to escape in the name of a file.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The slowest connection on which an upload isn't given up, in bytes a second.
const SLOWEST: u64 = 64 << 10;
/// The piece in which a file is read.
const PIECE: usize = 256 << 10;
/// From this size on, an upload is continued after a broken connection. A smaller one begins anew, which the gateway writes only once.
const RESUMED: u64 = 64 << 20;
/// How an upload is shown on a terminal.
const SHOWN: &str = "uploading {msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

/// A file that the gateway has.
#[derive(Debug)]
pub(super) struct Sent {
    /// How a submission refers to it.
    pub(super) reference: String,
    pub(super) sha256: String,
    pub(super) size: u64,
}

/// Uploads a file, unless the gateway has it. `namespace` selects the tenant. If the gateway has answered before, its restart is
/// waited for.
///
/// # Errors
/// The file can't be read; the gateway can't be reached or refuses it.
pub(super) async fn file(api: &Api, path: &Path, namespace: Option<&str>, has_answered: bool) -> Result<Sent, Error> {
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
    let sent = Sent { reference, sha256, size };
    let segments = ["files", sent.sha256.as_str()];
    let look = Call::head(format!("looking for {shown}"), &segments).query_if("namespace", namespace);
    let first = if has_answered { look.clone().through_restarts() } else { look.clone() };
    let arrived = match api.send(&first).await {
        Ok(_) => return Ok(sent),
        Err(Error::Problem(problem)) if problem.status == 404 => problem.upload_offset,
        Err(error) => return Err(error),
    };
    let action = format!("uploading {shown}");
    let call = match arrived {
        Some(_) if size >= RESUMED => Call::append(action, &segments),
        _ => Call::put(action, &segments),
    };
    let call = call.query_if("namespace", namespace).longer_by(Duration::from_secs(size / SLOWEST)).through_restarts();
    let started = Instant::now();
    let progress = progress(&shown, size);
    let content = async |offset: u64| {
        let mut file = File::open(path).await.map_err(|error| here(&error))?;
        file.seek(SeekFrom::Start(offset)).await.map_err(|error| here(&error))?;
        progress.reset();
        progress.set_position(offset);
        let (pieces, progress) = (ReaderStream::with_capacity(file, PIECE), progress.clone());
        Ok(Body::wrap_stream(pieces.inspect_ok(move |piece| progress.inc(piece.len() as u64))))
    };
    let uploaded = match arrived {
        Some(offset) if size >= RESUMED => api.append(&call, &look.through_restarts(), offset, size, content).await,
        _ => {
            let call = call.header("content-length", HeaderValue::from(size));
            api.upload(&call, async || content(0).await).await
        }
    };
    progress.finish_and_clear();
    uploaded?;
    note(&format!("uploaded {shown} ({}, {:.1}s)", readable(size), started.elapsed().as_secs_f64()));
    Ok(sent)
}

/// Returns the progress of an upload, which is shown if standard error is a terminal.
fn progress(name: &str, size: u64) -> ProgressBar {
    let bar = ProgressBar::new(size).with_message(name.to_owned());
    match ProgressStyle::with_template(SHOWN) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
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
pub(super) fn readable(bytes: u64) -> String {
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
    fn digest_is_of_the_whole_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(file.path()).unwrap(), (abc.to_owned(), 3));
    }
}
