//! `sparkgate-check`: submits, kills, reads and follows at a running gateway while faults happen, and compares what it saw with what
//! Sparkgate promises.

mod pods;

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use clap::{Args, Parser};
use sparkgate_check::{
    history::History,
    judge,
    play::{Gateway, Plan, Program, Recorder, play},
};

#[derive(Debug, Parser)]
#[command(name = "sparkgate-check", version, about)]
enum Command {
    /// Plays a run, records it, and judges it. Cause the faults meanwhile: kill replicas, the database, the API server, the network.
    Run(Run),
    /// Judges a history that was recorded before.
    Judge {
        history: PathBuf,
        #[command(flatten)]
        pods: Pods,
    },
}

#[derive(Debug, Args)]
struct Pods {
    /// What `kubectl get pods -A -l spark-role=driver --watch -o json` printed during the run: with it, each attempt is shown to have run at most once.
    #[arg(long, value_name = "FILE")]
    pods: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Run {
    /// URL of a gateway, without /v1; repeat it for each replica.
    #[arg(long, required = true, value_name = "URL")]
    server: Vec<String>,
    /// Token that is sent with each request.
    #[arg(long, env = "SPARKGATE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// File of certificates (PEM) to trust besides the system's.
    #[arg(long, env = "SPARKGATE_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// File with the body of `POST /v1/submissions` of a program that succeeds; may be repeated.
    #[arg(long, required = true, value_name = "FILE")]
    finishing: Vec<PathBuf>,
    /// The same of a program that fails.
    #[arg(long, value_name = "FILE")]
    failing: Vec<PathBuf>,
    /// The number of jobs.
    #[arg(long, default_value_t = 100)]
    jobs: u32,
    /// How many clients work at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// The time over which the jobs are spread, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How long submissions may take to end after the last was created, in seconds.
    #[arg(long, default_value_t = 900)]
    patience: u64,
    /// The seed of all random decisions; timing isn't repeated [default: a new one].
    #[arg(long)]
    seed: Option<u64>,
    /// The file of the history.
    #[arg(long, default_value = "history.jsonl", value_name = "FILE")]
    history: PathBuf,
    #[command(flatten)]
    pods: Pods,
}

#[tokio::main]
async fn main() -> ExitCode {
    match carry_out(Command::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sparkgate-check: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn carry_out(command: Command) -> anyhow::Result<bool> {
    let (mut history, pods) = match command {
        Command::Run(run) => {
            let history = record(&run).await?;
            println!("history: {}", run.history.display());
            (history, run.pods)
        }
        Command::Judge { history, pods } => {
            let file = File::open(&history).with_context(|| format!("opening {}", history.display()))?;
            let read = History::read(BufReader::new(file)).with_context(|| format!("reading {}", history.display()))?;
            (read, pods)
        }
    };
    if let Some(file) = &pods.pods {
        history.pods = pods::read(file)?;
    }
    let verdict = judge(&history);
    for (promise, what) in &verdict.broken {
        println!("BROKEN  {promise}: {what}");
    }
    println!("{}", history.summary());
    print!("{verdict}");
    Ok(verdict.broken.is_empty())
}

async fn record(run: &Run) -> anyhow::Result<History> {
    let ca_file = run.ca_file.as_deref();
    let gateways: Vec<_> =
        run.server.iter().map(|url| Gateway::at(url, run.token.as_deref(), ca_file)).collect::<Result<_, _>>()?;
    let of = |files: &[PathBuf], ends| files.iter().map(|file| program(file, ends)).collect::<Result<Vec<_>, _>>();
    let programs = [of(&run.finishing, "FINISHED")?, of(&run.failing, "FAILED")?].concat();
    // A run of refused requests would break no promise.
    for (program, file) in programs.iter().zip(run.finishing.iter().chain(&run.failing)) {
        for gateway in &gateways {
            gateway.would_accept(&program.request).await.with_context(|| format!("trying {}", file.display()))?;
        }
    }
    let seed = run.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 16);
    println!("seed {seed}: {} jobs, {} clients, {} gateways", run.jobs, run.clients, gateways.len());
    let file = File::create(&run.history).with_context(|| format!("creating {}", run.history.display()))?;
    let recorder = Recorder::new(BufWriter::new(file));
    let plan = Plan {
        programs,
        jobs: run.jobs,
        clients: run.clients,
        seed,
        time: Duration::from_secs(run.seconds),
        patience: Duration::from_secs(run.patience),
    };
    play(&gateways, &plan, &recorder).await?;
    Ok(recorder.history())
}

fn program(file: &Path, ends: &'static str) -> anyhow::Result<Program> {
    let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let request: serde_json::Value =
        serde_json::from_slice(&text).with_context(|| format!("{} is no JSON", file.display()))?;
    anyhow::ensure!(
        request.is_object(),
        "{}: expected the body of POST /v1/submissions, a JSON object",
        file.display()
    );
    Ok(Program { request, ends })
}
