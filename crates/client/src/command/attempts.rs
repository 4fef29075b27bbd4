//! `sparkgate attempts` and `sparkgate manifest`: what the gateway created for a submission, and what became of it.

use chrono::Utc;
use clap::Args;

use super::Outcome;
use crate::{
    api::{Api, Call},
    contexts::text_of,
    document::{self, Attempt},
    named::Named,
    options::{Gateway, Target},
    screen, span,
    table::{Cell, Column, cut, whole},
};

#[derive(Debug, Args)]
pub struct Attempts {
    #[command(flatten)]
    target: Target,
    /// The submission's id, or @latest.
    id: Named,
}

const COLUMNS: [Column<'static>; 4] = [whole("ATTEMPT"), whole("STATE"), whole("DURATION"), cut("FAILURE")];

#[derive(serde::Deserialize)]
struct List {
    items: Vec<Attempt>,
}

impl Attempts {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let id = self.id.resolved(&api).await?;
        let call = Call::get(format!("asking for the attempts of {id}"), &["submissions", id.as_str(), "attempts"]);
        let body = api.send(&call).await?.body;
        if self.target.json() {
            screen::document(&body)?;
            return Ok(0);
        }
        let List { items } = document::read(call.action(), &body)?;
        screen::table(&COLUMNS, &items.iter().map(row).collect::<Vec<_>>())?;
        Ok(0)
    }
}

fn row(attempt: &Attempt) -> Vec<Cell> {
    let ran = attempt.started_at.map(|at| span::between(at, attempt.finished_at.unwrap_or_else(Utc::now)));
    let why = attempt.failure.as_ref().map(|why| format!("{}: {}", why.code, why.message));
    vec![
        Cell::new(&attempt.attempt.to_string()),
        Cell::styled(&attempt.state, screen::style_of(&attempt.state)),
        Cell::new(&ran.unwrap_or_default()),
        Cell::new(&why.unwrap_or_default()),
    ]
}

#[derive(Debug, Args)]
pub struct Manifest {
    #[command(flatten)]
    gateway: Gateway,
    /// The submission's id, or @latest.
    id: Named,
    /// The objects of this attempt instead of the latest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// Output format, both of which kubectl reads.
    #[arg(short, long, default_value = "yaml", value_name = "FORMAT")]
    output: ManifestFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ManifestFormat {
    Yaml,
    Json,
}

impl Manifest {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let id = self.id.resolved(&api).await?;
        let call = Call::get(format!("asking for the objects of {id}"), &["submissions", id.as_str(), "manifest"]);
        let call = call.query_if("attempt", self.attempt);
        let body = api.send(&call).await?.body;
        if self.output == ManifestFormat::Json {
            screen::document(&body)?;
            return Ok(0);
        }
        let objects: serde_json::Value = document::read(call.action(), &body)?;
        screen::document(text_of(&objects)?.as_bytes())?;
        Ok(0)
    }
}
