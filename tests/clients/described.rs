//! schemathesis checks that the gateway behaves as its API description says.

use crate::{
    dev::Dev,
    python::{here, program, run},
};

#[test]
fn the_gateway_matches_its_api_description() {
    let dev = Dev::played();
    let mut command = program("SPARKGATE_API_TOOLS", "schemathesis");
    command.arg("--config-file").arg(here("schemathesis.toml"));
    command.args(["run", &format!("{}/v1/openapi.json", dev.url()), "--no-color"]);
    let (passed, said) = run(command.current_dir(dev.dir.path()));
    let summary = said.split_once("SUMMARY").map_or(said.as_str(), |(_, summary)| summary);
    println!("{summary}");
    assert!(passed, "{said}");
    // All phases have run.
    for phase in ["Examples", "Coverage", "Fuzzing", "Stateful"] {
        assert!(summary.contains(&format!("✅ {phase}")), "{phase}: {summary}");
    }
}
