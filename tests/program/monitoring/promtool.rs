//! The rules' own tests, by Prometheus' tool.

use std::process::Command;

#[test]
fn promtool_accepts_the_rules_and_their_tests() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/monitoring");
    for arguments in [["check", "rules", "rules.yaml"], ["test", "rules", "rules.test.yaml"]] {
        let output = Command::new("promtool").args(arguments).current_dir(folder).output();
        let output = output.expect("promtool is missing: run `scripts/setup prometheus`");
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success() && text.contains("SUCCESS"), "{arguments:?}: {text}");
    }
}
