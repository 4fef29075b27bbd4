//! `sparkgate kill`.

use std::io::{BufRead, IsTerminal, stdin};

use clap::Args;

use super::{Outcome, keep, label};
use crate::{
    api::{Api, Call},
    clean,
    document::Submission,
    error::Error,
    follow::{Seen, follow},
    named::Named,
    options::Target,
    pages::pages,
    screen::{self, note},
};
use sparkgate_submission::{State, SubmissionId};

#[derive(Debug, Args)]
pub struct Kill {
    #[command(flatten)]
    target: Target,
    /// The ids of the submissions, or their beginnings.
    #[arg(value_name = "ID", required_unless_present = "labels", conflicts_with = "labels", value_parser = Named::fixed)]
    ids: Vec<Named>,
    /// Kill all submissions with this label that haven't ended, after a question; may be repeated, all labels must match.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Kill without a question.
    #[arg(short, long)]
    yes: bool,
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
        let wanted = match self.labels.is_empty() {
            true => Named::all_resolved(&self.ids, &api).await?,
            false => self.confirmed(&api).await?,
        };
        for id in &wanted {
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

    /// Returns the live submissions with the labels, if the user agrees.
    async fn confirmed(&self, api: &Api) -> Result<Vec<SubmissionId>, Error> {
        let mut call = Call::get("looking for submissions to kill", &["submissions"]).query("limit", 500);
        for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
            call = call.query("state", state.as_str());
        }
        for (key, value) in &self.labels {
            call = call.query("label", format_args!("{key}={value}"));
        }
        let page = |cursor: Option<&str>| call.clone().query_if("cursor", cursor);
        let (found, _) = pages::<Submission>(api, None, true, page).await?;
        if found.is_empty() {
            note("no submission with this label is live");
        } else if !self.yes {
            for one in &found {
                note(&format!("{}  {}  {}", one.id, one.state, one.name));
            }
            let (question, input) = (format!("kill these {} submissions? [y/N]", found.len()), stdin());
            if !input.is_terminal() {
                return Err(Error::Here(format!("{question} Standard input is no terminal: add --yes to kill them")));
            }
            note(&question);
            let mut answer = String::new();
            input.lock().read_line(&mut answer).map_err(|error| Error::Here(format!("reading the answer: {error}")))?;
            if !matches!(answer.trim(), "y" | "Y" | "yes") {
                return Err(Error::Here("nothing was killed".to_owned()));
            }
        }
        Ok(found.iter().filter_map(|one| one.id.parse().ok()).collect())
    }

    fn show(&self, seen: &Seen) -> Result<(), Error> {
        match self.target.is_document() {
            true => self.target.document(&seen.body),
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
