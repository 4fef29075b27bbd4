//! `sparkgate hold` and `sparkgate release`.

use clap::Args;
use serde_json::json;

use super::{
    Outcome, keep,
    places::{self, Criteria},
};
use crate::{
    api::{Api, Call},
    clean,
    follow::Seen,
    named::Named,
    options::Target,
    screen,
};

#[derive(Debug, Args)]
pub struct Hold {
    #[command(flatten)]
    which: Which,
    /// Why, for other people.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct Release {
    #[command(flatten)]
    which: Which,
}

/// Submissions by their ids, or all that match a filter.
#[derive(Debug, Args)]
struct Which {
    #[command(flatten)]
    target: Target,
    /// The ids of the submissions, or their beginnings.
    #[arg(value_name = "ID", required_unless_present = "criteria", conflicts_with = "criteria", value_parser = Named::fixed)]
    ids: Vec<Named>,
    /// All in this queue.
    #[arg(long, value_name = "QUEUE", group = "criteria")]
    queue: Option<String>,
    #[command(flatten)]
    criteria: Criteria,
}

impl Hold {
    pub(super) async fn run(self) -> Outcome {
        let Which { target, ids, queue, criteria } = &self.which;
        let api = Api::new(&target.gateway)?;
        if ids.is_empty() {
            let filter = criteria.filter(queue.as_ref());
            let request = json!({"filter": filter, "action": "hold", "reason": self.reason});
            return places::change(&api, target, ("holding", "held"), request).await;
        }
        let body = json!({"reason": self.reason}).to_string();
        let call = |id: &str| Call::replace(format!("holding {id}"), &["submissions", id, "hold"], body.clone());
        self.which.change(&api, "held", call).await
    }
}

impl Release {
    pub(super) async fn run(self) -> Outcome {
        let Which { target, ids, queue, criteria } = &self.which;
        let api = Api::new(&target.gateway)?;
        if ids.is_empty() {
            let request = json!({"filter": criteria.filter(queue.as_ref()), "action": "release"});
            return places::change(&api, target, ("releasing", "released"), request).await;
        }
        let call = |id: &str| Call::delete(format!("releasing {id}"), &["submissions", id, "hold"]);
        self.which.change(&api, "released", call).await
    }
}

impl Which {
    /// Changes the submissions by their ids, even if some can't be changed. Returns the exit code of the first failure.
    async fn change(&self, api: &Api, done: &str, call: impl Fn(&str) -> Call) -> Outcome {
        let mut failed = None;
        for id in &Named::all_resolved(&self.ids, api).await? {
            let call = call(id.as_str());
            let seen = match api.send(&call).await {
                Ok(answer) => Seen::of(call.action(), answer),
                Err(error) => Err(error),
            };
            match seen {
                Ok(seen) if self.target.is_document() => self.target.document(&seen.body)?,
                Ok(seen) => screen::line(&format!("{} {done}", clean::line(&seen.submission.id)))?,
                Err(error) => keep(&mut failed, &error, id),
            }
        }
        Ok(failed.unwrap_or(0))
    }
}
