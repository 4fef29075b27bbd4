//! Settings that change while a gateway runs.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use serde_json::json;
use sparkgate_testing::{
    gateway::{Gateway, sparkgate, until},
    http,
    kube_apiserver::KubeApiserver,
    process::free_address,
};
use tempfile::TempDir;

use crate::crash::Place;

/// A gateway with a file of settings.
struct World {
    dir: TempDir,
    place: Place,
    gateway: Gateway,
    management: SocketAddr,
}

impl World {
    async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let place = Place::new(KubeApiserver::start().await).await;
        let (address, management) = (free_address(), free_address());
        fs::create_dir_all(dir.path().join("submitter/defaults")).unwrap();
        let mut command = sparkgate();
        command.args(["--log-format=json", "serve", "--listen", &address.to_string()]);
        command
            .args(["--management-listen", &management.to_string(), "--config"])
            .arg(dir.path().join("sparkgate.toml"));
        command.env("SPARKGATE_DATABASE_URL", &place.database);
        write(&dir.path().join("spark-defaults.conf"), "spark.kubernetes.container.image spark:1\n");
        write(&dir.path().join("sparkgate.toml"), &settings(&dir, &place, ""));
        let gateway = Gateway::start(command, address, false);
        Self { dir, place, gateway, management }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, more: &str) {
        write(&self.file("sparkgate.toml"), &settings(&self.dir, &self.place, more));
    }

    fn hang_up(&self) {
        let signalled = Command::new("kill").args(["-HUP", &self.gateway.id().to_string()]).status();
        assert!(signalled.unwrap().success());
    }

    /// Returns the reply to a dry run.
    fn dry_run(&self, more: &[(&str, &str)]) -> http::Reply {
        let mut properties = json!({"spark.kubernetes.namespace": self.place.namespace});
        for (key, value) in more {
            properties[*key] = json!(value);
        }
        let body = json!({"appResource": "local:///app.jar", "mainClass": "M", "sparkProperties": properties});
        let mut reply = None;
        // On a busy machine, a request may have to be repeated.
        until("the dry run is answered", || {
            let answer = http::post(self.gateway.address, "/v1/submissions?dryRun=true", &body.to_string()).unwrap();
            let is_answered = answer.status != 503;
            reply = Some(answer);
            is_answered
        });
        reply.unwrap()
    }

    fn readiness(&self) -> String {
        http::get(self.management, "/readyz").unwrap().body
    }

    fn until_logged(&self, part: &str) {
        until(part, || self.gateway.log().contains(part));
    }
}

/// Replaces a file as Kubernetes does: all at once.
fn write(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(next, path).unwrap();
}

fn settings(dir: &TempDir, place: &Place, more: &str) -> String {
    let dir = dir.path().display();
    let (kubeconfig, namespace) = (place.kubeconfig.display(), &place.namespace);
    format!(
        "kubeconfig = \"{kubeconfig}\"\nnamespaces = [\"{namespace}\"]\nspark-defaults = \"{dir}/spark-defaults.conf\"\n\
         submitter-dir = \"{dir}/submitter\"\n{more}"
    )
}

/// Neither the content of the files nor a signal costs a request.
#[tokio::test]
async fn changed_settings_count_without_a_restart_and_without_losing_a_request() {
    let world = World::new().await;
    let address = world.gateway.address;
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (stop, sent) = (stop.clone(), sent.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // A request that needs no connection to the database, of which a busy machine has none at times.
                    assert_eq!(http::get(address, "/v1/openapi.json").unwrap().status, 200);
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let more_retries = [("spark.sparkgate.maxRetries.application", "2")];
    assert!(world.dry_run(&more_retries).body.contains("spark:1"));

    // Defaults and named defaults, without a signal.
    write(&world.file("spark-defaults.conf"), "spark.kubernetes.container.image spark:2\n");
    write(&world.file("submitter/defaults/big.conf"), "spark.executor.memory 77g\n");
    until("the defaults are new", || world.dry_run(&[]).body.contains("spark:2"));
    until("there are named defaults", || world.dry_run(&[("spark.sparkgate.defaults", "big")]).body.contains("77g"));
    world.until_logged("settings reloaded");

    // Limits and the filter of the log, with a signal.
    assert!(!world.gateway.log().contains("DEBUG"));
    world.write("max-retries = 1\nlog = \"debug\"\n");
    world.hang_up();
    world.until_logged("SIGHUP received");
    until("the limit is new", || world.dry_run(&more_retries).status != 200);
    until("the log has more", || world.gateway.log().contains("DEBUG"));

    // What needs a restart is named, and changes nothing.
    world.write("max-retries = 1\nlog = \"debug\"\nmax-connections = 17\nretention = \"1d\"\n");
    world.until_logged("\"settings\":\"max-connections, retention\"");
    for _ in 0..20 {
        world.hang_up();
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    assert!(sent.load(Ordering::Relaxed) > 20);
    assert_eq!(world.readiness(), "ok");
    assert!(world.gateway.terminate(), "a graceful end");
}

#[tokio::test]
async fn changed_spark_lines_count_for_later_submissions_and_wrong_ones_change_nothing() {
    let world = World::new().await;
    let old = [("spark.sparkgate.sparkVersion", "3.5")];
    assert!(world.dry_run(&old).body.contains("which serves 4.3.0 only"));
    let lines = |image: &str| format!("lines:\n  - version: 3.5.9\n    image: {image}\n");
    write(&world.file("lines.yaml"), &lines("old:1"));
    world.write(&format!("spark-lines-file = \"{}\"\n", world.file("lines.yaml").display()));
    until("the line is served", || world.dry_run(&old).body.contains("old:1"));
    world.until_logged("\"changed\":\"Spark lines\"");
    assert!(world.dry_run(&[]).body.contains("spark:1"));

    write(&world.file("lines.yaml"), "lines:\n  - version: 3.5\n    image: old:2\n");
    until("the fault is named", || world.readiness().contains("line 2, column 14: lines[0].version"));
    assert!(world.dry_run(&old).body.contains("old:1"));
    write(&world.file("lines.yaml"), &lines("old:3"));
    until("the new image counts", || world.dry_run(&old).body.contains("old:3"));
    until("it is ready", || world.readiness() == "ok");

    // A line depends on the files that it names.
    write(&world.file("submitter/defaults/ansi.conf"), "spark.sql.ansi.enabled true\n");
    write(&world.file("lines.yaml"), &format!("{}    namedDefaults: [ansi]\n", lines("old:3")));
    until("the named defaults count", || world.dry_run(&old).body.contains("spark.sql.ansi.enabled"));
    fs::remove_file(world.file("submitter/defaults/ansi.conf")).unwrap();
    until("the missing file is named", || world.readiness().contains("no `ansi.conf` in defaults/"));
    assert!(world.dry_run(&old).body.contains("spark.sql.ansi.enabled"));
}

#[tokio::test]
async fn what_cannot_be_used_changes_nothing_and_readiness_says_why() {
    let world = World::new().await;
    let defaults = || write(&world.file("spark-defaults.conf"), "spark.kubernetes.container.image spark:2\n");
    let undo = || {
        world.write("");
        write(&world.file("spark-defaults.conf"), "spark.kubernetes.container.image spark:1\n");
        world.hang_up();
        until("it is ready", || world.readiness() == "ok");
    };
    for (more, said) in [
        ("max-retires = 3\n", "sparkgate.toml:5:1: there is no setting `max-retires`: did you mean `max-retries`?"),
        ("max-retries = \"many\"\n", "sparkgate.toml:5:15: invalid value 'many'"),
        ("log = \"=,=\"\n", "--log \"=,=\" is not a filter"),
        ("cors-origins = \"nonsense\"\n", "sparkgate.toml:5: `cors-origins` is set here"),
        ("tls-key = \"/k\"\n", "--tls-certificate"),
    ] {
        // Both change at once: the good half must not count either.
        world.write(more);
        defaults();
        world.hang_up();
        until(said, || world.readiness().contains(said));
        assert!(world.readiness().starts_with("ok, but the settings can't be reloaded"), "{}", world.readiness());
        assert!(world.dry_run(&[]).body.contains("spark:1"), "{more}");
        undo();
    }
    world.until_logged("the settings are not reloaded, the previous ones stay valid");

    // A file that the settings name.
    fs::create_dir(world.file("submitter/unknown")).unwrap();
    until("the directory is refused", || world.readiness().contains("submitter/unknown"));
    assert!(world.dry_run(&[]).body.contains("spark:1"));
    fs::remove_dir(world.file("submitter/unknown")).unwrap();
    undo();
    world.until_logged("the settings can be used again");
}
