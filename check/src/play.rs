//! A run: clients and followers against a gateway, each call recorded.

mod clients;
pub mod finals;
mod followers;
mod gateway;
mod record;

use std::{io::Write, time::Duration};

use fastrand::Rng;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use crate::history::{Job, Line};

pub use gateway::Gateway;
pub use record::Recorder;

/// The label that all submissions of a run have.
pub const RUN: &str = "sparkgate-check/run";
/// The label with the number of the job.
pub const JOB: &str = "sparkgate-check/job";

/// A request and how its program ends.
#[derive(Debug, Clone)]
pub struct Program {
    /// The body of `POST /v1/submissions`.
    pub request: serde_json::Value,
    /// FINISHED or FAILED.
    pub ends: &'static str,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// One in turn for each job.
    pub programs: Vec<Program>,
    pub jobs: u32,
    /// Clients at once.
    pub clients: u32,
    /// Of all random decisions.
    pub seed: u64,
    /// Until the last job is created. The jobs are spread over it.
    pub time: Duration,
    /// How long submissions may take to end after the last one was created.
    pub patience: Duration,
}

/// Plays a run: each job is created until the gateway has accepted it, some twice at once, some are killed, and all are read and followed
/// meanwhile. Returns after everything has ended, or the patience has.
///
/// # Errors
/// The history can't be written, or what is left can't be read at the end.
pub async fn play(
    gateways: &[Gateway],
    plan: &Plan,
    recorder: &Recorder<impl Write + Send + 'static>,
) -> anyhow::Result<()> {
    let run = uuid::Uuid::new_v4().simple().to_string();
    let followers = followers::Followers::begin(gateways, &run, recorder).await?;
    let began = Instant::now();
    let mut under_way = JoinSet::new();
    for number in 0..plan.jobs {
        let program = &plan.programs[number as usize % plan.programs.len()];
        recorder.add(Line::Job(Job { job: number, ends: Some(program.ends.to_owned()) }))?;
        sleep_until(began + plan.time.mul_f64(f64::from(number) / f64::from(plan.jobs))).await;
        while under_way.len() >= plan.clients as usize
            && let Some(ended) = under_way.join_next().await
        {
            ended??;
        }
        let mut request = program.request.clone();
        request["labels"][RUN] = run.clone().into();
        request["labels"][JOB] = number.to_string().into();
        let client = clients::Client {
            gateways: gateways.to_vec(),
            job: number,
            key: format!("{run}/{number}"),
            request: request.to_string(),
            random: Rng::with_seed(plan.seed.wrapping_add(u64::from(number) << 32)),
            recorder: recorder.clone(),
        };
        under_way.spawn(client.play(plan.patience));
    }
    while let Some(ended) = under_way.join_next().await {
        ended??;
    }
    let deadline = Instant::now() + plan.patience;
    while finals::are_live(gateways, &run, deadline).await? && Instant::now() < deadline {
        sleep(Duration::from_secs(1)).await;
    }
    let last = finals::record(gateways, &run, recorder, deadline).await?;
    followers.reach(last).await;
    recorder.flush()
}
