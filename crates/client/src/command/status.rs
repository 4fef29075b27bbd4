//! `sparkgate status`.

mod describe;

use chrono::Utc;
use clap::Args;

use super::Outcome;
use crate::{api::Api, follow::look, named::Named, options::Target, screen};

#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    target: Target,
    /// The ids of the submissions, or their beginnings; @latest is the newest one.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Named>,
}

impl Status {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let mut is_first = true;
        for name in &self.ids {
            let id = name.resolved(&api).await?;
            let seen = look(&api, id.as_str()).await?;
            if self.target.is_document() {
                self.target.document(&seen.body)?;
                continue;
            }
            let state = screen::state(&seen.submission.state);
            let gap = if is_first { "" } else { "\n" };
            screen::text(&format!("{gap}{}", describe::describe(&seen.submission, &state, Utc::now())))?;
            is_first = false;
        }
        Ok(0)
    }
}
