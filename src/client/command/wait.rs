//! `sparkgate wait`.

use clap::Args;
use tokio::time::Instant;

use super::Outcome;
use crate::{
    client::{
        api::Api,
        document::Submission,
        follow::{Progress, follow},
        screen::{Screen, note},
        server::Target,
        span::Span,
        why,
    },
    submission::{State, SubmissionId},
};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Wait {
    #[command(flatten)]
    target: Target,
    /// The submission's id.
    id: SubmissionId,
    /// Wait for this state, or one past it, instead of the end.
    #[arg(long = "for", value_name = "STATE", value_parser = state)]
    goal: Option<State>,
    /// Give up after this time, such as 90s or 1h30m.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
}

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    it FINISHED
  1    any other end without an exit code from 1 to 125, and errors
  2    a wrong command line
  4    an unknown id
  124  the time of --timeout is over
  else the driver's own";

impl Wait {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.server)?;
        let deadline = self.timeout.and_then(|time| Instant::now().checked_add(time.duration()));
        let mut progress = Progress::default();
        let seen = follow(&api, self.id.as_str(), self.goal, deadline, |submission| {
            // The last word goes to standard output.
            if let Some(line) = progress.line(submission).filter(|_| !submission.has_ended()) {
                note(&line);
            }
        })
        .await?;
        let screen = Screen::new();
        let written = match self.target.json() {
            true => screen.document(&seen.body),
            false => screen.line(&screen.state(&seen.submission.state)),
        };
        // Scripts came for the exit code.
        written.or_else(|error| if error.is_silent() { Ok(()) } else { Err(error) })?;
        why::tell_failure(&seen.submission);
        Ok(exit_status(&seen.submission, self.goal))
    }
}

fn state(text: &str) -> Result<State, String> {
    let words = || State::ALL.map(State::as_str).join(", ");
    text.to_ascii_uppercase().parse().map_err(|_| format!("expected one of {}", words()))
}

/// Asked for a state, it is enough to be there; a life that went on past it and ended badly is told as its end is.
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
    fn the_exit_code_answers_what_was_asked() {
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
