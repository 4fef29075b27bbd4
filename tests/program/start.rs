//! What can't work ends at once, with a sentence and an exit code.

use std::process::Command;

use crate::process::{free_address, sparkgate};

fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn database() -> String {
    std::env::var("DATABASE_URL").unwrap()
}

#[test]
fn no_database() {
    let nowhere = free_address();
    let url = format!("postgres://u:secret@{nowhere}/x");
    let said = refusal(sparkgate().arg("serve").env("SPARKGATE_DATABASE_URL", url));
    assert!(said.contains(&format!("can't connect to the database at {nowhere}")), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn no_cluster() {
    let nowhere = free_address();
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: 'http://{nowhere}'}}}}]\n\
         users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let mut command = sparkgate();
    command.arg("serve").env("SPARKGATE_DATABASE_URL", database()).arg("--kubeconfig").arg(&kubeconfig);
    let said = refusal(&mut command);
    assert!(said.contains(&format!("can't use the Kubernetes API at http://{nowhere}")), "{said}");
}

#[test]
fn an_open_network() {
    let mut command = sparkgate();
    command.args(["serve", "--listen", "0.0.0.0:0"]).env("SPARKGATE_DATABASE_URL", database());
    let said = refusal(&mut command);
    assert!(said.contains("refusing to listen on 0.0.0.0:0") && said.contains("--trusted-network"), "{said}");
}
