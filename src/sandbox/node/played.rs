//! A container's life without a Spark: it says so, lasts a moment and succeeds.

use std::time::Duration;

use super::contract::Role;
use super::logs::LogWriter;

/// How long a played driver runs: long enough to be seen as RUNNING.
const LIFE: Duration = Duration::from_secs(2);

/// Plays the container and returns its exit code.
pub(super) async fn play(role: Role, args: &[String], mut log: LogWriter) -> i32 {
    let role = match role {
        Role::Driver => "driver",
        Role::Executor => "executor",
    };
    log.say(&format!("This {role} is played: no Spark was found on this machine, so nothing is computed."));
    log.say("For real jobs install one (pip install pyspark) or set SPARK_HOME, and start the sandbox again.");
    log.say(&format!("Its arguments were: {}", args.join(" ")));
    tokio::time::sleep(LIFE).await;
    log.say(&format!("The played {role} ends with exit code 0."));
    0
}
