//! A Python client generated from `openapi/sparkgate.json`: it type-checks, and runs a job.

use std::fs;

use crate::{
    dev::Dev,
    python::{here, program, run},
};

const TOOLS: &str = "SPARKGATE_API_TOOLS";

#[test]
fn a_generated_client_type_checks_and_runs_a_job() {
    let dev = Dev::played();
    let dir = dev.dir.path();
    let document = format!("{}/openapi/sparkgate.json", env!("CARGO_MANIFEST_DIR"));
    let mut generate = program(TOOLS, "openapi-python-client");
    generate.args(["generate", "--path", &document, "--meta", "none", "--fail-on-warning", "--config"]);
    generate.arg(here("generated/config.yaml")).arg("--output-path");
    let (done, said) = run(generate.arg(dir.join("sparkgate_client")));
    assert!(done, "{said}");

    let script = dir.join("job.py");
    fs::copy(here("generated/job.py"), &script).unwrap();
    let mut check = program(TOOLS, "mypy");
    check.arg("--config-file").arg(here("generated/mypy.ini")).args(["job.py", "sparkgate_client"]);
    let (done, said) = run(check.current_dir(dir));
    assert!(done, "{said}");

    let mut job = program(TOOLS, "python");
    let (done, said) = run(job.arg(&script).arg(dev.url()).current_dir(dir));
    assert!(done && said.contains("the job ran"), "{said}\n{}", dev.gateway.log());
}
