//! `sparkgate requeue`.

use clap::{ArgGroup, Args};
use serde_json::json;

use super::{
    Outcome, keep,
    places::{self, Criteria},
};
use crate::{
    api::{Api, Call},
    clean,
    document::Submission,
    follow::Seen,
    named::Named,
    options::Target,
    screen,
};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("place").args(["queue", "priority"]).required(true).multiple(true)))]
pub struct Requeue {
    #[command(flatten)]
    target: Target,
    /// The ids of the submissions, or their beginnings.
    #[arg(value_name = "ID", required_unless_present = "criteria", conflicts_with = "criteria", value_parser = Named::fixed)]
    ids: Vec<Named>,
    /// All that wait in this queue.
    #[arg(long, value_name = "QUEUE", group = "criteria")]
    from: Option<String>,
    #[command(flatten)]
    criteria: Criteria,
    /// The queue to move them to [default: their present one].
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Their priority there [default: that of the other queue, or their present one].
    #[arg(long, value_name = "N")]
    priority: Option<i32>,
}

impl Requeue {
    /// Moves all submissions, even if some can't be moved. Returns the exit code of the first failure.
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        if self.ids.is_empty() {
            let filter = self.criteria.filter(self.from.as_ref());
            let request = json!({"filter": filter, "action": "move", "queue": self.queue, "priority": self.priority});
            return places::change(&api, &self.target, ("moving", "moved"), request).await;
        }
        let body = json!({"queue": self.queue, "priority": self.priority}).to_string();
        let mut failed = None;
        for id in &Named::all_resolved(&self.ids, &api).await? {
            let segments = ["submissions", id.as_str(), "queue"];
            let call = Call::replace(format!("moving {id}"), &segments, body.clone());
            let seen = match api.send(&call).await {
                Ok(answer) => Seen::of(call.action(), answer),
                Err(error) => Err(error),
            };
            match seen {
                Ok(seen) if self.target.is_document() => self.target.document(&seen.body)?,
                Ok(seen) => screen::line(&line(&seen.submission))?,
                Err(error) => keep(&mut failed, &error, id),
            }
        }
        Ok(failed.unwrap_or(0))
    }
}

fn line(submission: &Submission) -> String {
    let queue = submission.queue.as_deref().unwrap_or_default();
    let priority = submission.priority.unwrap_or_default();
    clean::line(&format!("{} in queue {queue} with priority {priority}", submission.id)).into_owned()
}
