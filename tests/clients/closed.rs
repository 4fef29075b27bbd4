//! A gateway with an access file, on the cluster of a `sparkgate dev`.

use std::{fs, net::SocketAddr, process::Command};

use serde_json::Value;
use sparkgate_testing::{
    database,
    gateway::{Gateway, sparkgate},
    process::free_address,
};

use crate::dev::Dev;

pub(crate) struct Closed {
    pub(crate) gateway: Gateway,
    /// An API key of a submitter.
    pub(crate) key: String,
    /// The port of Spark's clients, which send no credentials.
    pub(crate) listener: SocketAddr,
    /// The port of Livy's clients.
    pub(crate) livy: SocketAddr,
}

impl Closed {
    pub(crate) fn beside(dev: &Dev) -> Self {
        let dir = dev.dir.path();
        let (address, listener, livy, database) = (free_address(), free_address(), free_address(), database());
        let access = dir.join("access.yaml");
        let text = format!(
            "authentication:
  sparkListener: {{listen: \"{listener}\", subject: airflow}}
tenants:
  analytics:
    namespaces: [default]
    members: [{{role: submitter, subjects: [\"listener:airflow\"]}}]
"
        );
        fs::write(&access, text).unwrap();
        let with_database = |words: &[&str]| -> Command {
            let mut command = sparkgate();
            command.args(words).env("SPARKGATE_DATABASE_URL", &database);
            command
        };
        let mut command =
            with_database(&["serve", "--listen", &address.to_string(), "--livy-listen", &livy.to_string()]);
        command.arg("--access-file").arg(access);
        command.arg("--kubeconfig").arg(dir.join("dev/kubeconfig"));
        command.arg("--spark-defaults").arg(dir.join("dev/spark-defaults.conf"));
        let gateway = Gateway::start(command, address, false);
        let created =
            with_database(&["bootstrap-key", "--role", "submitter", "--tenant", "analytics"]).output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let key = String::from_utf8(created.stdout).unwrap().trim().to_owned();
        Self { gateway, key, listener, livy }
    }

    /// Returns the submissions, the newest first.
    pub(crate) fn submissions(&self) -> Vec<Value> {
        let mut command = sparkgate();
        command.args(["list", "-o", "json"]).env("SPARKGATE_URL", self.gateway.address.to_string());
        let listed = command.env("SPARKGATE_TOKEN", &self.key).output().unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        listed["items"].as_array().unwrap().clone()
    }
}

/// Creates a database and returns its URL.
fn database() -> String {
    let name = format!("clients_{}", uuid::Uuid::new_v4().simple());
    tokio::runtime::Runtime::new().unwrap().block_on(database::create(&name))
}
