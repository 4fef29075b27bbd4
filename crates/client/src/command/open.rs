//! `sparkgate open`.

use clap::Args;

use super::Outcome;
use crate::{api::Api, browser, connection::Connection, named::Named, options::Gateway, screen};

#[derive(Debug, Args)]
pub struct Open {
    #[command(flatten)]
    gateway: Gateway,
    /// The id of a submission, or its beginning; @latest is the newest one. Without it, the list of submissions.
    #[arg(value_name = "ID", conflicts_with = "job")]
    id: Option<Named>,
    /// The page of a job: all submissions of this name.
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Only print the address; start no browser.
    #[arg(long)]
    no_browser: bool,
}

impl Open {
    pub(super) async fn run(self) -> Outcome {
        let page = match (&self.id, &self.job) {
            (Some(id), _) => format!("submissions/{}", id.resolved(&Api::new(&self.gateway)?).await?),
            (None, Some(job)) => {
                format!("jobs/{}", percent_encoding::utf8_percent_encode(job, percent_encoding::NON_ALPHANUMERIC))
            }
            (None, None) => "submissions".to_owned(),
        };
        let address = Connection::of(&self.gateway)?.server.console(&page);
        screen::text(&format!("{address}\n"))?;
        if !self.no_browser {
            browser::open(&address);
        }
        Ok(0)
    }
}
