//! Simulates a container without Spark: it logs that it is simulated, runs for a moment and succeeds.

use std::time::Duration;

use super::contract::Role;
use super::logs::LogWriter;

/// How long a simulated driver runs: long enough to be seen as RUNNING.
const LIFE: Duration = Duration::from_secs(2);

/// Simulates the container and returns its exit code.
pub(super) async fn play(role: Role, args: &[String], mut log: LogWriter) -> i32 {
    let role = match role {
        Role::Driver => "driver",
        Role::Executor => "executor",
    };
    log.say(&format!("This {role} is simulated: no Spark was found on this machine, so nothing is computed."));
    log.say("To run real jobs, install Spark (pip install pyspark) or set SPARK_HOME, and restart the sandbox.");
    log.say(&format!("Its arguments were: {}", args.join(" ")));
    tokio::time::sleep(LIFE).await;
    log.say(&format!("The simulated {role} ends with exit code 0."));
    0
}
