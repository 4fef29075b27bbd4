//! What `submit` and `rerun` print of a new submission.

use tokio::signal::ctrl_c;

use super::Outcome;
use crate::{
    api::{Answer, Api},
    clean,
    connection::Connection,
    error::Error,
    follow::{Progress, Seen, follow},
    options::Target,
    screen::{self, note},
    why,
};

/// The exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// Prints a new submission. With `wait`, follows it to its end, and returns its exit code.
pub(super) async fn show(api: &Api, target: &Target, answer: Answer, wait: bool) -> Outcome {
    if answer.headers.contains_key("idempotency-replayed") {
        note("this key was used before: this is the existing submission");
    }
    let created = Seen::of("submitting", answer)?;
    warn(&created.submission.warnings);
    let id = &created.submission.id;
    if !wait {
        match target.is_document() {
            true => target.document(&created.body)?,
            false => screen::line(&clean::line(id))?,
        }
        if screen::is_watched() {
            let page = Connection::of(&target.gateway)?.server.console(&format!("submissions/{id}"));
            note(&format!("console: {page}"));
        }
        return Ok(0);
    }
    if !target.is_document() {
        silently(screen::line(&clean::line(id)))?;
    }
    let mut progress = Progress::from_attempt(created.submission.attempt);
    let end = follow(api, id, None, None, async |submission| {
        progress.tell_retried(api, submission).await;
        if let Some(line) = progress.line(submission) {
            note(&line);
        }
    });
    let seen = tokio::select! {
        seen = end => seen.inspect_err(|_| {
            note(&format!("{id} is not affected: run `sparkgate wait {id}` to wait for it again"));
        })?,
        Ok(()) = ctrl_c() => {
            note(&format!(
                "{id} is not affected: run `sparkgate wait {id}` to wait for it again, `sparkgate logs -f {id}` to \
                 follow its log, or `sparkgate kill {id}` to end it"
            ));
            return Ok(INTERRUPTED);
        }
    };
    if target.is_document() {
        silently(target.document(&seen.body))?;
    }
    why::tell_failure(&seen.submission);
    Ok(seen.submission.exit_status())
}

/// Prints warnings about properties.
pub(super) fn warn(warnings: &[String]) {
    for warning in warnings {
        note(&clean::line(&format!("warning: {warning}")));
    }
}

/// Ignores a closed standard output: a submission is followed even if its id can't be printed.
fn silently(written: Result<(), Error>) -> Result<(), Error> {
    written.or_else(|error| if error.is_silent() { Ok(()) } else { Err(error) })
}
