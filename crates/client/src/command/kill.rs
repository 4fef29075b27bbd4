//! `sparkgate kill`.

use std::fmt::Display;

use clap::Args;

use super::Outcome;
use crate::{
    api::{Api, Call},
    clean,
    error::Error,
    follow::{Seen, follow},
    options::Target,
    screen::{self, note},
};
use sparkgate_submission::SubmissionId;

#[derive(Debug, Args)]
pub struct Kill {
    #[command(flatten)]
    target: Target,
    /// The ids of the submissions.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<SubmissionId>,
    /// Wait until the submissions have ended.
    #[arg(long)]
    wait: bool,
}

impl Kill {
    /// Kills all submissions, even if some of the kills fail. Returns the exit code of the first failure.
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let mut failed = None;
        let mut ids = Vec::new();
        for id in &self.ids {
            match kill(&api, id.as_str()).await {
                Ok(seen) if self.wait => ids.push(seen.submission.id),
                Ok(seen) => self.show(&seen)?,
                Err(error) => keep(&mut failed, &error, id),
            }
        }
        for id in &ids {
            match follow(&api, id, None, None, async |_| {}).await {
                Ok(seen) => self.show(&seen)?,
                Err(error) => keep(&mut failed, &error, id),
            }
        }
        Ok(failed.unwrap_or(0))
    }

    fn show(&self, seen: &Seen) -> Result<(), Error> {
        match self.target.json() {
            true => screen::document(&seen.body),
            false => {
                let id = clean::line(&seen.submission.id);
                screen::line(&format!("{id} {}", screen::state(&seen.submission.state)))
            }
        }
    }
}

async fn kill(api: &Api, id: &str) -> Result<Seen, Error> {
    let call = Call::delete(format!("killing {id}"), &["submissions", id]);
    Seen::of(call.action(), api.send(&call).await?)
}

/// Prints the error of one submission, and keeps the exit code of the first error.
fn keep(failed: &mut Option<u8>, error: &Error, id: impl Display) {
    note(&format!("error: {id}: {error}"));
    failed.get_or_insert(error.exit_code());
}
