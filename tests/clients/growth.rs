//! A real driver whose heap was full has more in the next attempt.

use std::fs;

use serde_json::json;
use sparkgate_testing::gateway::sparkgate;

use crate::dev::Dev;

/// Allocates 700 MB in the heap of the driver.
const APPLICATION: &str = "
import os
from pyspark.sql import SparkSession

spark = SparkSession.builder.master('local[1]').getOrCreate()
spark._jvm.java.nio.ByteBuffer.allocate(700_000_000)
print('enough in attempt', os.environ['SPARKGATE_ATTEMPT'], 'of', os.environ['SPARKGATE_SUBMISSION_ID'])
";

#[test]
fn a_driver_whose_heap_was_full_finishes_with_more() {
    let dev = Dev::with_spark();
    let path = dev.dir.path().join("heap.py");
    fs::write(&path, APPLICATION).unwrap();
    let run = |args: &[&str]| {
        let output = sparkgate().env("SPARKGATE_URL", dev.url()).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let path = path.to_str().unwrap();
    let conf = ["--conf", "spark.driver.memory=512m", "--conf", "spark.sparkgate.memoryGrowth.retries=1"];
    let factor = ["--conf", "spark.sparkgate.memoryGrowth.factor=3"];
    let id = run(&[&["submit"], &conf[..], &factor, &["--wait", path]].concat());
    let id = id.trim();
    let attempts: serde_json::Value =
        serde_json::from_str(&run(&["attempts", id, "-o", "json"])).expect("attempts as JSON");
    let attempts = attempts["items"].as_array().or(attempts.as_array()).unwrap().clone();
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    assert_eq!((&attempts[0]["state"], &attempts[0]["failure"]["code"]), (&json!("FAILED"), &json!("OUT_OF_MEMORY")));
    assert_eq!(attempts[1]["state"], "FINISHED", "{attempts:?}");
    assert_eq!(attempts[1]["launchChanges"][0]["properties"]["spark.driver.memory"], "1536m");
    let log = run(&["logs", id]);
    assert!(log.contains(&format!("enough in attempt 2 of {id}")), "{log}");
}
