//! The real spark-submit: a JVM that creates the objects of a driver and exits.

use std::{
    io::{Read, Seek},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

use crate::{
    process::Process,
    servers::{Kubernetes, spark_home},
};

/// How often its memory is read.
const LOOK: Duration = Duration::from_millis(10);

/// One run.
pub(super) struct Ran {
    pub(super) begun: Instant,
    pub(super) wall: Duration,
    /// Peak memory in MB.
    pub(super) memory: f64,
}

/// Returns spark-submit for this cluster, without arguments.
pub(super) fn spark_submit(kubernetes: &Kubernetes) -> anyhow::Result<Command> {
    let mut command = Command::new(spark_home()?.join("bin/spark-submit"));
    command.env("KUBECONFIG", kubernetes.kubeconfig());
    Ok(command)
}

/// Runs it until it exits.
///
/// # Errors
/// It fails; the message has what it wrote.
pub(super) async fn run(mut command: Command) -> anyhow::Result<Ran> {
    let mut said = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?).kill_on_drop(true);
    let begun = Instant::now();
    let mut child = command.spawn().context("starting spark-submit")?;
    // The scripts exec the JVM, so the process id stays the same.
    let process = child.id().map(Process).context("it has just started")?;
    let mut memory = 0.0;
    let status = loop {
        memory = process.peak_memory().unwrap_or_default().max(memory);
        tokio::select! {
            status = child.wait() => break status?,
            () = sleep(LOOK) => {}
        }
    };
    if !status.success() {
        let mut words = String::new();
        said.rewind()?;
        said.read_to_string(&mut words)?;
        bail!("spark-submit: {status}: {words}");
    }
    Ok(Ran { begun, wall: begun.elapsed(), memory })
}
