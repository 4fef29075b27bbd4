//! `sparkgate status`.

mod describe;

use chrono::Utc;
use clap::Args;

use super::Outcome;
use crate::{api::Api, follow::look, options::Target, screen};
use sparkgate_submission::SubmissionId;

#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    target: Target,
    /// The submission's id.
    id: SubmissionId,
}

impl Status {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let seen = look(&api, self.id.as_str()).await?;
        match self.target.json() {
            true => screen::document(&seen.body)?,
            false => {
                let state = screen::state(&seen.submission.state);
                screen::text(&describe::describe(&seen.submission, &state, Utc::now()))?;
            }
        }
        Ok(0)
    }
}
