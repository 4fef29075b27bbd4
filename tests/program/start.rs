//! Errors at the start: a start that can't succeed ends at once, with a message and an exit code.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::{Command, Stdio},
};

use sparkgate_testing::{
    database,
    gateway::{sparkgate, until},
    http,
    kube_apiserver::KubeApiserver,
    process::free_address,
};
use tempfile::NamedTempFile;

use crate::crash::Place;

fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Runs the command until its output contains `expected`, and returns the output. The command keeps trying meanwhile,
/// and `ask` sends it a request.
fn waits(command: &mut Command, expected: &str, ask: impl FnOnce()) -> String {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    while !said.contains(expected) {
        said += &lines.next().unwrap_or_else(|| panic!("it ended: {said}")).unwrap();
    }
    ask();
    assert_eq!(child.try_wait().unwrap(), None, "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    said
}

/// Returns `serve` on an address that is currently free.
fn serve(url: &str) -> (Command, SocketAddr) {
    let address = free_address();
    let mut command = sparkgate();
    command.args(["serve", "--listen", &address.to_string()]).env("SPARKGATE_DATABASE_URL", url);
    (command, address)
}

#[test]
fn a_start_waits_for_the_database() {
    let nowhere = free_address();
    let (mut command, address) = serve(&format!("postgres://u:hunter2@{nowhere}/x"));
    let management = free_address();
    command.args(["--management-listen", &management.to_string()]);
    let said = waits(&mut command, "Connection refused", || {
        assert_eq!(http::get(address, "/livez").unwrap().status, 200, "a supervisor needn't restart it");
        assert_eq!(http::get(management, "/livez").unwrap().status, 200);
        assert_eq!(http::get(management, "/v1/submissions").unwrap().status, 404);
        let status = http::get(address, "/v1/submissions/status/driver-1").unwrap();
        assert_eq!(status.json()["action"], "ErrorResponse");
        for reply in [http::get(address, "/readyz").unwrap(), http::get(management, "/readyz").unwrap(), status] {
            assert_eq!(reply.status, 503, "{}", reply.body);
            assert!(reply.head.to_ascii_lowercase().contains("retry-after: 1"), "{}", reply.head);
            assert!(reply.body.contains("waits for its database"), "{}", reply.body);
        }
    });
    assert!(said.contains(&format!("can't connect to the database at {nowhere}")), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

/// The first signal ends it, although it isn't serving yet.
#[test]
fn a_signal_ends_a_start_that_waits() {
    let (mut command, _) = serve(&format!("postgres://u@{}/x", free_address()));
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("waiting for the database") {}
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_database_that_does_not_exist_is_refused() {
    let (server, _) =
        database::admin_url().rsplit_once('/').map(|(server, name)| (server.to_owned(), name.to_owned())).unwrap();
    let said = refusal(&mut serve(&format!("{server}/nothing_like_it")).0);
    assert!(said.contains("nothing_like_it"), "{said}");
}

#[test]
fn a_start_waits_for_the_cluster() {
    let nowhere = free_address();
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: 'http://{nowhere}'}}}}]\n\
         users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let mut command = serve(&database::admin_url()).0;
    let expected = format!("the Kubernetes API at http://{nowhere}/ doesn't answer yet");
    waits(command.arg("--kubeconfig").arg(&kubeconfig), &expected, || {});
}

/// The account's Role is created a moment after the gateway is started, as with one `kubectl apply` of all objects.
#[test]
fn a_start_waits_for_its_rights() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(KubeApiserver::start());
    let place = runtime.block_on(Place::without_rights(server));
    let (mut command, address) = place.command();
    waits(&mut command, "denies the list of pods", || {
        runtime.block_on(server.create_namespace(&place.namespace));
        until("it is ready", || http::get(address, "/readyz").is_ok_and(|reply| reply.status == 200));
    });
}

#[test]
fn an_account_without_rights_is_reported() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(KubeApiserver::start());
    let place = runtime.block_on(Place::without_rights(server));
    let said = refusal(&mut place.command().0);
    assert!(said.contains(&format!("may this account list pods in the namespace {}?", place.namespace)), "{said}");
}

#[test]
fn listening_on_an_open_network_is_refused() {
    let mut command = sparkgate();
    command.args(["serve", "--listen", "0.0.0.0:0"]).env("SPARKGATE_DATABASE_URL", database::admin_url());
    let said = refusal(&mut command);
    assert!(said.contains("refusing to listen on 0.0.0.0:0") && said.contains("--trusted-network"), "{said}");
}

#[test]
fn a_certificate_that_cannot_be_read_is_refused() {
    let mut command = serve(&database::admin_url()).0;
    let said = refusal(command.args(["--tls-certificate", "/nowhere.pem", "--tls-key", "/nowhere.pem"]));
    assert!(said.contains("--tls-certificate /nowhere.pem: the file can't be read"), "{said}");
}

#[test]
fn a_wrong_encryption_key_is_refused_with_its_line_and_without_its_text() {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "# keys\nk1:hunter2").unwrap();
    let said = refusal(serve(&database::admin_url()).0.arg("--encryption-key-file").arg(file.path()));
    assert!(
        said.contains("is no encryption key file: line 2: the key isn't base64") && !said.contains("hunter2"),
        "{said}"
    );
}

#[test]
fn too_few_connections_are_refused() {
    let output = serve(&database::admin_url()).0.env("SPARKGATE_DATABASE_CONNECTIONS", "2").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("2 is not in 4.."), "{said}");
}

#[test]
fn an_invalid_database_url_is_refused_without_its_password() {
    let said = refusal(sparkgate().arg("serve").env("SPARKGATE_DATABASE_URL", "nonsense:SEKRETPW@"));
    assert!(said.contains("not a URL of Postgres") && !said.contains("SEKRETPW"), "{said}");
}

/// Returns the error message of `dev` with these arguments. No part is started: the directory contains only the lock.
fn dev_refusal(args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let said = refusal(sparkgate().arg("dev").args(args).arg("--dir").arg(dir.path()).env_remove("SPARK_HOME"));
    assert!(!dir.path().join("postgres").exists() && !dir.path().join("sandbox").exists(), "{said}");
    said
}

#[test]
fn a_sandbox_on_an_open_network_is_refused() {
    for flag in ["--listen", "--sandbox-listen"] {
        let said = dev_refusal(&[flag, "0.0.0.0:6070"]);
        assert!(said.contains(&format!("refusing {flag} 0.0.0.0:6070")), "{said}");
    }
    let said = refusal(sparkgate().args(["sandbox", "--listen", "[::]:0", "--dir", "/nowhere"]));
    assert!(said.contains("refusing --listen [::]:0"), "{said}");
}

#[test]
fn an_address_in_use_is_refused() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (taken_at, free) = (taken.local_addr().unwrap().to_string(), free_address().to_string());
    for args in [["--listen", &taken_at, "--sandbox-listen", &free], ["--listen", &free, "--sandbox-listen", &taken_at]]
    {
        let said = dev_refusal(&args);
        assert!(said.contains(&format!("listening on {taken_at}")), "{said}");
    }
}

#[test]
fn missing_spark_defaults_are_refused() {
    let said = dev_refusal(&["--spark-defaults", "/nowhere/spark-defaults.conf"]);
    assert!(said.contains("reading the Spark defaults from /nowhere/spark-defaults.conf"), "{said}");
}
