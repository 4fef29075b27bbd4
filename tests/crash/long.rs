//! `make crash`: the long run, and the long outages.

#![expect(clippy::unwrap_used, reason = "a tool for developers, which shares its parts with a test")]

mod harness;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use sparkgate_testing::guard::guard;

use crate::harness::{
    absence::{self, Absence},
    chaos::Blows,
    failover::{self, Standby},
    outage::{self, Server},
    run::{Run, complaint},
    upgrade,
    world::Setting,
};

/// Submits jobs to replicas that are killed while they work, and checks what they recorded.
#[derive(Debug, Parser)]
#[command(name = "scripts/crash")]
struct Options {
    /// The number of jobs to be accepted.
    #[arg(long, default_value_t = 10_000)]
    jobs: u32,
    /// How many times a replica is killed with SIGKILL. The number of all other faults is derived from it.
    #[arg(long, default_value_t = 500)]
    kills: usize,
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    /// The number of submissions that the database has from before.
    #[arg(long, default_value_t = 100_000)]
    old: u32,
    /// The seed of all random decisions; timing isn't repeated [default: a new one].
    #[arg(long)]
    seed: Option<u64>,
    /// How often to measure, after the storm, how long the other replicas take to take over.
    #[arg(long, default_value_t = 10)]
    takeovers: usize,
    /// How long the API server, and then Postgres, is down in the runs after the storm, in seconds. Failovers to a standby with and
    /// without the last commits follow. 0 skips all these runs.
    #[arg(long, default_value_t = 60)]
    outage: u64,
    /// Let the tenants submit without queues.
    #[arg(long)]
    without_queues: bool,
    /// Keep the logs even if the run succeeds.
    #[arg(long)]
    keep: bool,
    /// The `sparkgate` program to run.
    #[arg(long, default_value = "target/release/sparkgate")]
    program: PathBuf,
    /// The program of an older release: instead of the storm, its replicas are replaced by those of `program` and back, one
    /// by one, while jobs are submitted.
    #[arg(long)]
    upgrade_from: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 16);
    println!("seed {seed}: {} jobs, {} kills, {} replicas", options.jobs, options.kills, options.replicas);
    if options.keep {
        guard().keep();
        println!("logs: {}", guard().directory().display());
    }
    let program = std::path::absolute(&options.program).unwrap();

    if let Some(old) = &options.upgrade_from {
        let old = std::path::absolute(old).unwrap();
        let verdict = upgrade::play(old, program, seed, options.jobs).await;
        let states: Vec<_> = verdict.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let (rows, lost, second) = (verdict.rows, verdict.lost, verdict.extra_creates);
        println!("{rows} submissions, {lost} lost, {second} second pods of an attempt: {}", states.join(", "));
        return match complaint("the upgrade", &verdict.violations) {
            None if second == 0 => ExitCode::SUCCESS,
            complaint => {
                println!("\n{}", complaint.unwrap_or_default());
                ExitCode::FAILURE
            }
        };
    }
    let mut complaints = vec![storm(&options, &program, seed).await];
    if options.outage > 0 {
        complaints.extend(looks_away(&program, seed).await);
        complaints.extend(outages(&options, &program, seed).await);
        complaints.push(restarts(&program, seed).await);
        complaints.extend(failovers(&program, seed).await);
    }
    let complaints: Vec<_> = complaints.into_iter().flatten().collect();
    for complaint in &complaints {
        println!("\n{complaint}");
    }
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn storm(options: &Options, program: &std::path::Path, seed: u64) -> Option<String> {
    let kills = options.kills;
    let blows = Blows {
        kills,
        pauses: kills / 20,
        postgres: kills / 25,
        apiserver: (kills / 50).max(1),
        etcd: (kills / 50).max(1),
        compactions: (kills / 50).max(1),
        network: kills / 10,
        isolations: kills / 25,
        long_isolations: (kills / 100).max(1),
        pages: kills / 20,
        snapshot: true,
        denials: kills / 25,
        webhooks: kills / 10,
        acts: kills * 3,
        locks: kills / 10,
        objects: kills / 5,
        lost_replies: 0.02,
    };
    let run = Run {
        program: program.to_owned(),
        seed,
        jobs: options.jobs,
        replicas: options.replicas,
        setting: Setting {
            tenants: true,
            objects: true,
            old: options.old,
            queues: !options.without_queues,
            sessions: true,
            restarts: true,
        },
        blows,
        takeovers: options.takeovers,
        // A launch that was denied for long is retried after five minutes.
        patience: Duration::from_secs(420),
        talkative: true,
    };
    let report = Box::pin(run.play()).await;
    println!("\n{report}");
    complaint(&format!("the storm of seed {seed}"), &report.verdict.violations)
}

async fn looks_away(program: &std::path::Path, seed: u64) -> Vec<Option<String>> {
    let mut complaints = Vec::new();
    for absence in [Absence::WithFinalizer, Absence::Resumed, Absence::Forgotten] {
        let verdict = absence::play(program.to_owned(), seed, absence, 100).await;
        let states: Vec<_> = verdict.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        println!("{:<36}{}, {} wrong", absence.to_string(), states.join(", "), verdict.wrong_outcomes);
        complaints.push(complaint(&absence.to_string(), &verdict.violations));
    }
    complaints
}

async fn restarts(program: &std::path::Path, seed: u64) -> Option<String> {
    let verdict = outage::restarts(program.to_owned(), seed, 20, 40).await;
    let states: Vec<_> = verdict.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    println!("{:<36}{}", "API server restarted 20 times", states.join(", "));
    complaint("the API server restarted 20 times", &verdict.violations)
}

async fn failovers(program: &std::path::Path, seed: u64) -> Vec<Option<String>> {
    let mut complaints = Vec::new();
    for standby in [Standby::Synchronous, Standby::Lagging] {
        let name = format!("failover to a standby, {standby:?}").to_lowercase();
        let failover = Box::pin(failover::play(program.to_owned(), seed, 400, standby)).await;
        println!("{name:<36}{failover}");
        complaints.push(complaint(&name, &failover.verdict.violations));
    }
    complaints
}

async fn outages(options: &Options, program: &std::path::Path, seed: u64) -> Vec<Option<String>> {
    let mut complaints = Vec::new();
    for server in [Server::Apiserver, Server::Postgres] {
        let away = Duration::from_secs(options.outage);
        let jobs = u32::try_from(options.outage * 16).unwrap();
        let outage = outage::play(program.to_owned(), seed, server, away, jobs).await;
        let name = format!("{server:?} away for {} s", options.outage);
        println!("{name:<36}{outage}");
        complaints.push(complaint(&name, &outage.verdict.violations));
    }
    complaints
}
