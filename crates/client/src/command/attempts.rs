//! `sparkgate attempts` and `sparkgate manifest`: what the gateway created for a submission, and what became of it.

use chrono::Utc;
use clap::Args;

use super::{Outcome, of_submissions::OfSubmissions};
use crate::{
    api::{Api, Call},
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
    /// The ids of the submissions, or their beginnings; @latest is the newest one.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Named>,
}

const COLUMNS: [Column<'static>; 4] = [whole("ATTEMPT"), whole("STATE"), whole("DURATION"), cut("FAILURE")];

#[derive(serde::Deserialize)]
struct List {
    items: Vec<Attempt>,
}

impl Attempts {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let mut table = OfSubmissions::new(&COLUMNS, self.ids.len());
        for id in Named::all_resolved(&self.ids, &api).await? {
            let call = Call::get(format!("asking for the attempts of {id}"), &["submissions", id.as_str(), "attempts"]);
            let body = api.send(&call).await?.body;
            if self.target.is_document() {
                self.target.document(&body)?;
                continue;
            }
            let List { items } = document::read(call.action(), &body)?;
            for attempt in &items {
                table.add(&id, row(attempt));
            }
        }
        if !self.target.is_document() {
            table.print()?;
        }
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
    /// The ids of the submissions, or their beginnings; @latest is the newest one.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Named>,
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
        for id in Named::all_resolved(&self.ids, &api).await? {
            let call = Call::get(format!("asking for the objects of {id}"), &["submissions", id.as_str(), "manifest"]);
            let body = api.send(&call.query_if("attempt", self.attempt)).await?.body;
            match self.output {
                ManifestFormat::Json => screen::document(&body)?,
                ManifestFormat::Yaml => screen::yaml(&body)?,
            }
        }
        Ok(0)
    }
}
