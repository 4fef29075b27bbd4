//! What is to be measured, and with what.

use std::path::PathBuf;

use anyhow::Context;

/// Measures Sparkgate and prints a table for each figure.
#[derive(Debug, clap::Parser)]
#[command(name = "sparkgate-bench")]
pub(crate) struct Bench {
    /// What to measure; everything if nothing is named.
    #[arg(value_enum)]
    pub(crate) figures: Vec<Name>,
    /// How often each figure is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// A tenth of the work, to see that all of it runs. Not for publishing.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the figures are written as JSON.
    #[arg(long, default_value = "target/bench")]
    pub(crate) out: PathBuf,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sparkgate")]
    pub(crate) program: PathBuf,
    /// A superuser of a Postgres that waits for the disk; databases are made and dropped there.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: String,
    /// The directory of etcd and kube-apiserver.
    #[arg(long, env = "SPARKGATE_KUBE_ASSETS")]
    pub(crate) kube_assets: PathBuf,
}

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Name {
    /// Durable creates a second, beside Postgres' own rate.
    Accept,
    /// Whole submissions a second, beside a client that only creates the objects.
    Launch,
    /// CPU time and API writes of a submission's whole life, beside spark-submit's.
    Cost,
    /// From a change of a pod until HTTP shows it.
    Lag,
    /// What the process takes, with nothing to do and beside 100,000 drivers.
    Memory,
    /// Drivers that are rendered a second, beside JSON alone.
    Render,
    /// Status and list replies a second, beside Postgres' own rate for the same statements.
    Read,
    /// What a submission costs, and a start, as the history and the number of pods grow.
    Growth,
    /// What the submissions of one namespace take while another one misbehaves, beside what they take in quiet.
    Neighbours,
}

impl Name {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Launch => "launch",
            Self::Cost => "cost",
            Self::Lag => "lag",
            Self::Memory => "memory",
            Self::Render => "render",
            Self::Read => "read",
            Self::Growth => "growth",
            Self::Neighbours => "neighbours",
        }
    }
}

impl Bench {
    /// `full`, or a tenth of it.
    pub(crate) fn size(&self, full: usize) -> usize {
        if self.quick { (full / 10).max(1) } else { full }
    }

    /// The program, wherever a child runs.
    pub(crate) fn program(&self) -> anyhow::Result<PathBuf> {
        self.program.canonicalize().with_context(|| {
            format!("{} isn't there: `make bench` builds it, or --program names another", self.program.display())
        })
    }
}
