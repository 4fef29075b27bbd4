//! The command line: what to measure, and with what.

use std::path::PathBuf;

use anyhow::Context;

/// Measures Sparkgate and prints a table for each figure.
#[derive(Debug, clap::Parser)]
#[command(name = "sparkgate-bench")]
pub(crate) struct Bench {
    /// The figures to measure. Default: all of them but `years`, which takes an hour and 30 GB of disk, and `peers`,
    /// which needs Kubeflow's operator.
    #[arg(value_enum)]
    pub(crate) figures: Vec<Name>,
    /// How many times each figure is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Does a tenth of the work, to check that every figure runs. Don't publish these results.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Numbers of ended submissions that `years` measures beside; ten million need 30 GB.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000, 10_000_000])]
    pub(crate) ended: Vec<usize>,
    /// The systems that `peers` measures. Default: all of them.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Peer::ALL)]
    pub(crate) peers: Vec<Peer>,
    /// The directory for the results as JSON.
    #[arg(long, default_value = "target/bench")]
    pub(crate) out: PathBuf,
    /// The page into which the tables are written, in place of those that it has. `--quick` writes none.
    #[arg(long)]
    pub(crate) page: Option<PathBuf>,
    /// The `sparkgate` program to measure.
    #[arg(long, default_value = "target/published/sparkgate")]
    pub(crate) program: PathBuf,
    /// The URL of a Postgres superuser; `fsync` must be on. Databases are created and dropped there.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: String,
    /// The directory with etcd and kube-apiserver.
    #[arg(long, env = "SPARKGATE_KUBE_ASSETS")]
    pub(crate) kube_assets: PathBuf,
}

/// A system that submits drivers, which `peers` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Peer {
    /// Spark's own standalone master with its REST server.
    Master,
    /// spark-submit in a loop.
    Submit,
    /// Kubeflow's operator.
    Operator,
    Sparkgate,
}

impl Peer {
    pub(crate) const ALL: [Self; 4] = [Self::Master, Self::Submit, Self::Operator, Self::Sparkgate];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Master => "Spark's master",
            Self::Submit => "spark-submit",
            Self::Operator => "Kubeflow's operator",
            Self::Sparkgate => "Sparkgate",
        }
    }
}

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Name {
    /// Durable creates per second, compared with Postgres' own rate.
    Accept,
    /// Durable creates per second of authenticated callers, compared with a gateway without an access file.
    Access,
    /// Durable creates per second with traces, compared with a gateway without.
    Traces,
    /// Whole submissions per second, compared with a client that only creates the objects.
    Launch,
    /// CPU time and API writes of a submission's whole life, compared with spark-submit's.
    Cost,
    /// The time from a change of a pod until HTTP shows it.
    Lag,
    /// The memory of the process, idle and with 100,000 drivers.
    Memory,
    /// Drivers rendered per second, compared with JSON processing alone.
    Render,
    /// Status and list replies per second, compared with Postgres' own rate for the same statements.
    Read,
    /// The costs of a submission and of a start as the history and the number of pods grow.
    Growth,
    /// The latency of one namespace's submissions while another namespace misbehaves, compared with a quiet cluster.
    Neighbours,
    /// The costs of rounds, claims and backlogs of queues, and the rates with queues, compared with those without.
    Queues,
    /// What the gateway adds to requests of Spark Connect, and the costs of 500 open sessions.
    Sessions,
    /// The costs beside a million and ten million ended submissions, while the retention deletes as many as arrive.
    Years,
    /// Submissions by Spark's own master, spark-submit, Kubeflow's operator and Sparkgate, one after the other.
    Peers,
    /// The costs of the console's pages beside a million ended submissions, and of 500 open ones.
    Console,
}

impl Name {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Access => "access",
            Self::Traces => "traces",
            Self::Launch => "launch",
            Self::Cost => "cost",
            Self::Lag => "lag",
            Self::Memory => "memory",
            Self::Render => "render",
            Self::Read => "read",
            Self::Growth => "growth",
            Self::Neighbours => "neighbours",
            Self::Queues => "queues",
            Self::Sessions => "sessions",
            Self::Years => "years",
            Self::Peers => "peers",
            Self::Console => "console",
        }
    }
}

impl Bench {
    /// Returns `full`, or a tenth of it with `--quick`.
    pub(crate) fn size(&self, full: usize) -> usize {
        if self.quick { (full / 10).max(1) } else { full }
    }

    /// Returns the absolute path of the program, so that a child finds it from any working directory.
    pub(crate) fn program(&self) -> anyhow::Result<PathBuf> {
        self.program.canonicalize().with_context(|| {
            format!("{} isn't there: `make bench` builds it, or --program names another", self.program.display())
        })
    }
}
