//! `sparkgate hold` and `sparkgate release`.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::{Outcome, keep, label};
use crate::{
    api::{Api, Call},
    clean, document,
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
    #[command(flatten)]
    filter: Filter,
}

/// A submission must match all of them.
#[derive(Debug, Args)]
#[group(id = "criteria", multiple = true)]
struct Filter {
    /// All in this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// All of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// All in this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// All of this user.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// All whose name has this prefix.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// All with this label; may be repeated, all labels must match.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
}

impl Hold {
    pub(super) async fn run(self) -> Outcome {
        let body = json!({"reason": self.reason}).to_string();
        let call = |what: &str, segments: &[&str]| Call::replace(format!("holding {what}"), segments, body.clone());
        self.which.change("held", call).await
    }
}

impl Release {
    pub(super) async fn run(self) -> Outcome {
        let call = |what: &str, segments: &[&str]| Call::delete(format!("releasing {what}"), segments);
        self.which.change("released", call).await
    }
}

impl Which {
    /// Changes all of them, even if some can't be changed. Returns the exit code of the first failure.
    async fn change(&self, done: &str, call: impl Fn(&str, &[&str]) -> Call) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        if self.ids.is_empty() {
            return self.change_all(&api, done, call("submissions", &["holds"])).await;
        }
        let mut failed = None;
        for id in &Named::all_resolved(&self.ids, &api).await? {
            let call = call(id.as_str(), &["submissions", id.as_str(), "hold"]);
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

    async fn change_all(&self, api: &Api, done: &str, call: Call) -> Outcome {
        let Filter { queue, tenant, namespace, owner, name, labels } = &self.filter;
        let fields = [("queue", queue), ("tenant", tenant), ("namespace", namespace), ("owner", owner), ("name", name)];
        let call = fields.into_iter().fold(call, |call, (field, value)| call.query_if(field, value.as_ref()));
        let call = labels.iter().fold(call, |call, (key, value)| call.query("label", format_args!("{key}={value}")));
        let answer = api.send(&call).await?;
        if self.target.is_document() {
            self.target.document(&answer.body)?;
            return Ok(0);
        }
        let Count { changed } = document::read(call.action(), &answer.body)?;
        let noun = if changed == 1 { "submission" } else { "submissions" };
        screen::line(&format!("{changed} {noun} {done}"))?;
        Ok(0)
    }
}

#[derive(Deserialize)]
struct Count {
    changed: u64,
}
