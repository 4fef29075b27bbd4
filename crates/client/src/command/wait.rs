//! `sparkgate wait`.

use clap::Args;
use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::Outcome;
use crate::{
    api::Api,
    document::Submission,
    follow::{Progress, follow},
    named::Named,
    options::Target,
    screen::{self, note},
    span::Span,
    why,
};
use sparkgate_submission::{State, SubmissionId};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Wait {
    #[command(flatten)]
    target: Target,
    /// The ids of the submissions, or their beginnings; @latest is the newest one. With several, all are waited for.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Named>,
    /// Wait until the submission has reached this state or passed it, instead of its end.
    #[arg(long = "for", value_name = "STATE", value_parser = state)]
    goal: Option<State>,
    /// Give up after this time, such as 90s or 1h30m.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
}

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    the submission FINISHED
  1    it ended otherwise, without an exit code from 1 to 125, or an error occurred
  2    the command line is wrong
  4    the id is unknown
  124  --timeout has expired
  130  Ctrl-C
  else the exit code of the driver
Of several submissions, it is the code of the first one on the command line whose code isn't 0.";

/// The most submissions that are polled at the same time.
const AT_ONCE: usize = 16;

impl Wait {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let deadline = self.timeout.and_then(|time| Instant::now().checked_add(time.duration()));
        let ids = Named::all_resolved(&self.ids, &api).await?;
        if let [id] = ids.as_slice() {
            return self.one(&api, id, deadline, false).await;
        }
        let waits = ids.iter().enumerate().map(async |(at, id)| {
            let code = self.one(&api, id, deadline, true).await.unwrap_or_else(|error| {
                note(&format!("error: {id}: {error}"));
                error.exit_code()
            });
            (at, code)
        });
        let mut codes: Vec<_> = stream::iter(waits).buffer_unordered(AT_ONCE).collect().await;
        codes.sort_unstable();
        Ok(codes.into_iter().map(|(_, code)| code).find(|code| *code != 0).unwrap_or(0))
    }

    /// Waits for one submission, which each line names if it is one of several.
    async fn one(&self, api: &Api, id: &SubmissionId, deadline: Option<Instant>, of_several: bool) -> Outcome {
        let of = |line: String| if of_several { format!("{id} {line}") } else { line };
        let mut progress = Progress::default();
        let seen = follow(api, id.as_str(), self.goal, deadline, async |submission| {
            progress.tell_retried(api, submission).await;
            // The final state goes to standard output.
            if let Some(line) = progress.line(submission).filter(|_| !submission.has_ended()) {
                note(&of(line));
            }
        })
        .await?;
        let written = match self.target.is_document() {
            true => self.target.document(&seen.body),
            false => screen::line(&of(screen::state(&seen.submission.state))),
        };
        // A closed standard output is ignored: scripts need the exit code.
        written.or_else(|error| if error.is_silent() { Ok(()) } else { Err(error) })?;
        why::tell_failure(&seen.submission);
        Ok(exit_status(&seen.submission, self.goal))
    }
}

fn state(text: &str) -> Result<State, String> {
    let words = || State::ALL.map(State::as_str).join(", ");
    text.to_ascii_uppercase().parse().map_err(|_| format!("expected one of {}", words()))
}

/// Returns the exit code. With a goal, it is 0 if the submission is in that state or hasn't ended. Otherwise it is the exit
/// code of the end, and at least 1 if the goal was a different end.
fn exit_status(submission: &Submission, goal: Option<State>) -> u8 {
    match goal {
        Some(goal) if submission.state() == Some(goal) || !submission.has_ended() => 0,
        Some(goal) if goal.is_terminal() => submission.exit_status().max(1),
        _ => submission.exit_status(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_depends_on_the_state_waited_for() {
        let status = |state: &str, goal| {
            let submission = Submission { state: state.to_owned(), exit_code: Some(3), ..Submission::default() };
            exit_status(&submission, goal)
        };
        assert_eq!(status("FINISHED", None), 0);
        assert_eq!(status("FAILED", None), 3);
        assert_eq!(status("RUNNING", Some(State::Running)), 0);
        assert_eq!(status("KILLING", Some(State::Running)), 0);
        assert_eq!(status("FINISHED", Some(State::Running)), 0);
        assert_eq!(status("FAILED", Some(State::Running)), 3);
        assert_eq!(status("KILLED", Some(State::Killed)), 0);
        assert_eq!(status("FINISHED", Some(State::Killed)), 1, "not what was waited for");
    }
}
