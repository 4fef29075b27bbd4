//! `kill -9` of `sparkgate serve` on a real kube-apiserver, while jobs run that outlive it.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use sparkgate_testing::{
    database,
    gateway::{Gateway, sparkgate},
    kube_apiserver::{ADMIN, GATEWAY, KubeApiserver},
    process::free_address,
};

/// A driver that waits for a file and exits with the code in it, and ignores all signals before.
const PLAYED_SPARK: &str = "#!/bin/sh
trap '' TERM
for file; do :; done
echo waiting for \"$file\"
while [ ! -s \"$file\" ]; do sleep 0.1; done
exit \"$(cat \"$file\")\"
";

/// The cluster's node, which ends with the test.
pub(crate) struct Node(Child);

impl Node {
    pub(crate) fn start(kubeconfig: &Path, dir: &Path) -> Self {
        Self::with_spark(kubeconfig, dir, PLAYED_SPARK)
    }

    /// Starts a node whose drivers run a script instead of spark-submit.
    pub(crate) fn with_spark(kubeconfig: &Path, dir: &Path, spark: &str) -> Self {
        let home = dir.join("spark");
        fs::create_dir_all(home.join("bin")).unwrap();
        let submit = home.join("bin/spark-submit");
        fs::write(&submit, spark).unwrap();
        fs::set_permissions(&submit, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = sparkgate();
        command.arg("sandbox").arg("--kubeconfig").arg(kubeconfig).arg("--dir").arg(dir.join("node"));
        command.arg("--spark-home").arg(home).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) database: String,
}

impl Place {
    pub(crate) async fn new(server: &KubeApiserver) -> Self {
        let place = Self::without_rights(server).await;
        server.create_namespace(&place.namespace).await;
        place
    }

    /// Creates the same without rights and without the namespace.
    pub(crate) async fn without_rights(server: &KubeApiserver) -> Self {
        let namespace = format!("crash-{}", uuid::Uuid::new_v4().simple());
        Self { database: database::create(&namespace).await, namespace, kubeconfig: server.file(GATEWAY) }
    }

    /// Starts a gateway; each call starts a new process on the same database.
    fn serve(&self) -> Gateway {
        let (command, address) = self.command();
        Gateway::start(command, address, false)
    }

    pub(crate) fn command(&self) -> (Command, SocketAddr) {
        self.command_at(&self.kubeconfig)
    }

    /// Does the same for another cluster.
    pub(crate) fn command_at(&self, kubeconfig: &Path) -> (Command, SocketAddr) {
        let address = free_address();
        let mut command = sparkgate();
        command.args(["serve", "--listen", &address.to_string(), "--namespaces", &self.namespace]);
        command.arg("--kubeconfig").arg(kubeconfig).env("SPARKGATE_DATABASE_URL", &self.database);
        (command, address)
    }

    /// Submits a driver that exits with the code written to `file`.
    fn submit(&self, gateway: &Gateway, file: &Path) -> String {
        let properties =
            json!({"spark.kubernetes.namespace": self.namespace, "spark.kubernetes.container.image": "spark"});
        gateway.submit("local:///opt/app.py", &[file.to_str().unwrap()], &properties)
    }
}

#[tokio::test]
async fn a_killed_gateway_finds_the_true_outcomes_and_starts_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let server = KubeApiserver::start().await;
    let place = Place::new(server).await;
    let _node = Node::start(&server.file(ADMIN), dir.path());
    let files = ["fails", "finishes", "at-once", "killed"].map(|name| dir.path().join(name));

    let gateway = place.serve();
    let failing = place.submit(&gateway, &files[0]);
    let finishing = place.submit(&gateway, &files[1]);
    gateway.follow(&failing, "RUNNING");
    gateway.follow(&finishing, "RUNNING");
    let killed = place.submit(&gateway, &files[3]);
    gateway.follow(&killed, "RUNNING");
    assert_eq!(gateway.kill(&killed)["success"], true);
    // The gateway dies right after it has accepted this submission.
    let accepted = place.submit(&gateway, &files[2]);
    gateway.kill_dash_nine();

    fs::write(&files[0], "3").unwrap();
    fs::write(&files[2], "0").unwrap();
    let restarted = place.serve();
    restarted.follow(&failing, "FAILED");
    let message = restarted.status(&failing)["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "the driver exited with code 3 (Error)");
    // The claim of the dead process may last for a while.
    restarted.follow(&accepted, "FINISHED");
    fs::write(&files[1], "0").unwrap();
    restarted.follow(&finishing, "FINISHED");
    assert_eq!(restarted.status(&killed)["driverState"], "RUNNING", "its driver ignores signals");
    fs::write(&files[3], "7").unwrap();
    restarted.follow(&killed, "KILLED");
    // The deleted pod disappears with its kill. No id got a second pod.
    let created = fs::read_to_string(server.file("audit.log")).unwrap();
    let pods = format!("\"requestURI\":\"/api/v1/namespaces/{}/pods?", place.namespace);
    let creates = created.lines().filter(|line| line.contains("\"verb\":\"create\"") && line.contains(&pods));
    let creates: Vec<Value> = creates.map(|line| serde_json::from_str(line).unwrap()).collect();
    let names = |code: u64| {
        let of_code = creates.iter().filter(move |event| event["responseStatus"]["code"] == code);
        of_code.map(|event| event["objectRef"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let made = names(201);
    let distinct: BTreeSet<&String> = made.iter().collect();
    assert_eq!(distinct.len(), made.len(), "one each: {made:?}");
    // A create that took effect while its sender died has no 201 in the log; the next create then gets a 409.
    let met: BTreeSet<String> = names(409).into_iter().filter(|name| !made.contains(name)).collect();
    assert_eq!(made.len() + met.len(), 4, "made {made:?}, met {met:?}");
    assert!(restarted.terminate(), "a graceful end");
}
