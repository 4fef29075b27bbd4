//! `spark-submit` without a JVM: prints the Kubernetes objects of one submission.
//!
//! ```console
//! $ cargo run -p sparkgate-spark --example render < request.json
//! $ cargo run -p sparkgate-spark --example render < request.json | kubectl create -f -
//! ```
//!
//! The request is Spark's `CreateSubmissionRequest`: `{"appResource": "local:///…", "sparkProperties": {…}}`.

use std::{error::Error, io};

use chrono::Utc;
use uuid::Uuid;

use sparkgate_spark::{
    DriverNames, NameEntropy, NamedRequest, SparkVersion, SubmitContext, SubmitterFiles, build_driver,
    rest::parse_partial,
};

fn main() -> Result<(), Box<dyn Error>> {
    let version = SparkVersion::V4_3;
    let (request, unknown_fields) = parse_partial(io::read_to_string(io::stdin())?.as_bytes(), version)?;
    for field in unknown_fields {
        eprintln!("{field}: a request has no such field");
    }
    let request = NamedRequest::new(request, version)?;

    // Time and randomness come from the caller: the same ones give the same objects.
    let submitted_at = Utc::now();
    let entropy = NameEntropy::from_uuids(Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
    let names = DriverNames::for_request(&request, submitted_at.timestamp_millis(), &entropy);

    let driver = build_driver(
        &request,
        &SubmitContext {
            version,
            names: &names,
            submitted_at,
            user: "spark",
            // What spark-submit would read from its disk: SPARK_CONF_DIR, HADOOP_CONF_DIR, pod templates.
            submitter: &SubmitterFiles::default(),
            properties: &[],
        },
    )?;
    println!("{:#}", driver.to_list()?);
    Ok(())
}
