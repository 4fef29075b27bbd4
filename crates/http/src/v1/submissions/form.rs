//! A submission and its files in one request: a form, `multipart/form-data`.
//!
//! Its first part, `request`, is the JSON document; each other part, `file`, is a file, which the document names as
//! `sparkgate-file:<file name>`. Files are kept as they arrive, and the submission is accepted after the last one.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    BoxError,
    body::Body,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use http_body_util::StreamBody;
use hyper::body::Frame;
use multer::{Field, Multipart};
use tokio::time::timeout;

use super::new::parse;
use crate::v1::files::discard;
use sparkgate_service::{FormFiles, Session, SubmissionOptions};
use sparkgate_spark::CreateSubmissionRequest;
use sparkgate_web::{
    body::Held,
    problem::{Code, Problem},
    state::AppState,
};

const REQUEST: &str = "request";
const FILE: &str = "file";
/// How long a client may send nothing between two parts.
const SILENCE: Duration = Duration::from_secs(60);
/// The most bytes that are read between two pieces of content: those of a part's head.
const HEAD: usize = 64 << 10;

/// Returns the boundary of the parts, if a request is a form.
pub(super) fn boundary_of(headers: &HeaderMap) -> Option<String> {
    multer::parse_boundary(headers.get(header::CONTENT_TYPE)?.to_str().ok()?).ok()
}

/// Reads a form: keeps its files, and returns the request that refers to them.
///
/// The future must not be dropped before it is ready.
pub(super) async fn read(
    state: &AppState,
    caller: &Session,
    boundary: String,
    body: Body,
    waits: bool,
) -> Result<(CreateSubmissionRequest, SubmissionOptions, Held), Problem> {
    let mut content = body.into_data_stream();
    let unread = Arc::new(AtomicUsize::new(0));
    let paced = Paced { content: &mut content, unread: unread.clone(), is_resting: false };
    let read = parts(state, caller, Multipart::new(paced, boundary), &unread).await;
    if !waits {
        discard(&mut content, read.is_ok()).await;
    }
    read
}

async fn parts<'a>(
    state: &AppState,
    caller: &Session,
    mut form: Multipart<'a>,
    unread: &'a AtomicUsize,
) -> Result<(CreateSubmissionRequest, SubmissionOptions, Held), Problem> {
    let first = next(&mut form).await?.filter(|part| part.name() == Some(REQUEST));
    let first = first.ok_or_else(|| refused(format!("its first part has to be `{REQUEST}`, the JSON document")))?;
    let content = StreamBody::new(counted(first, unread).map_ok(Frame::data));
    let (bytes, held) = state.bodies.read(content).await?;
    let (mut request, options) = parse(&bytes, caller.spark_lines().newest())?;
    drop(bytes);
    let mut files = FormFiles::from_request(&request)?;
    while let Some(part) = next(&mut form).await? {
        let name = match (part.name(), part.file_name()) {
            (Some(FILE), Some(name)) => name.to_owned(),
            (Some(FILE), None) => return Err(refused(format!("a part `{FILE}` has no file name"))),
            (name, _) => {
                let name = name.unwrap_or_default();
                return Err(refused(format!("after `{REQUEST}`, each part is a `{FILE}`: there is a part {name:?}")));
            }
        };
        files.check(&name).map_err(refused)?;
        state.service.files.upload_of_form(caller, &mut files, &name, counted(part, unread)).await?;
    }
    files.write_into(&mut request)?;
    Ok((request, options, held))
}

/// Returns the next part.
async fn next<'a>(form: &mut Multipart<'a>) -> Result<Option<Field<'a>>, Problem> {
    let next = timeout(SILENCE, form.next_field()).await;
    let next = next.map_err(|_| refused(format!("nothing arrived for {} seconds", SILENCE.as_secs())))?;
    next.map_err(|error| refused(cause(&error)))
}

/// Returns the content of a part. What is read of it is no longer unread.
fn counted<'a>(part: Field<'a>, unread: &'a AtomicUsize) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + 'a {
    part.inspect(|_| unread.store(0, Ordering::Relaxed)).map_err(|error| cause(&error).into())
}

fn cause(error: &multer::Error) -> String {
    match error {
        multer::Error::StreamReadFailed(cause) => cause.to_string(),
        error => error.to_string(),
    }
}

fn refused(reason: impl std::fmt::Display) -> Problem {
    Problem::new(Code::InvalidRequest, format!("The form can't be read: {reason}."))
}

/// The body of a form, piece by piece. The parser would take all pieces that have arrived, and keep the head of a part, however long
/// it is.
struct Paced<'a, S> {
    content: &'a mut S,
    /// The bytes that the parser has taken and not returned yet.
    unread: Arc<AtomicUsize>,
    /// The last call returned a piece.
    is_resting: bool,
}

impl<S, E> Stream for Paced<'_, S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: Into<BoxError>,
{
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.is_resting) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let piece = futures::ready!(self.content.poll_next_unpin(context));
        self.is_resting = true;
        Poll::Ready(piece.map(|piece| {
            let piece = piece.map_err(Into::into)?;
            // What was unread before this piece is no content, but the head of a part.
            if self.unread.fetch_add(piece.len(), Ordering::Relaxed) > HEAD {
                return Err("the head of a part is too long".into());
            }
            Ok(piece)
        }))
    }
}
