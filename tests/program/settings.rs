//! The file of settings: what a start, `config check` and `config show` make of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use sparkgate_testing::gateway::sparkgate;
use tempfile::TempDir;

fn file(dir: &TempDir, text: &str) -> PathBuf {
    let path = dir.path().join("sparkgate.toml");
    fs::write(&path, text).unwrap();
    path
}

fn run(command: &mut Command) -> Output {
    command.env_remove("SPARKGATE_DATABASE_URL").output().unwrap()
}

fn config(arguments: &[&str], path: &Path) -> Output {
    run(sparkgate().arg("config").args(arguments).env("SPARKGATE_CONFIG_FILE", path))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

#[test]
fn a_start_with_a_wrong_file_is_refused_with_all_faults_and_their_places() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "database-url = \"postgres://u:SEKRETPW@h/d\"\nmax-retires = 3\nretention = \"7 days\"\n");
    for command in ["serve", "doctor", "migrate"] {
        let output = run(sparkgate().arg(command).arg("--config").arg(&path));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let name = path.display();
        assert!(
            said.contains(&format!("{name}:2:1: there is no setting `max-retires`: did you mean `max-retries`?")),
            "{said}"
        );
        assert!(
            said.contains(&format!("{name}:3:13: invalid value '7 days' for '--retention <TIME|off>': expected")),
            "{said}"
        );
        assert!(!said.contains("SEKRETPW"), "{said}");
    }
}

#[test]
fn a_setting_that_only_the_start_can_judge_is_refused_with_its_line() {
    let dir = TempDir::new().unwrap();
    for (setting, said) in [
        ("cors-origins = [\"nonsense\"]", "`cors-origins` is set here"),
        ("spark-defaults = \"/nowhere.conf\"", "`spark-defaults` is set here"),
        ("log = \"=,=\"", "`log` is set here"),
        ("access-file = \"/nowhere.yaml\"", "`access-file` is set here"),
        ("tls-certificate = \"/c.pem\"", "`tls-certificate` is set here"),
    ] {
        let path = file(&dir, &format!("database-url = \"postgres://u@h/d\"\nlisten = \"127.0.0.1:0\"\n{setting}\n"));
        let output = run(sparkgate().arg("serve").arg("--config").arg(&path));
        let error = text(&output.stderr);
        assert!(
            !output.status.success() && error.contains(&format!("{}:3: {said}", path.display())),
            "{setting}: {error}"
        );
    }
}

#[test]
fn a_check_finds_the_faults_of_the_file_and_of_the_files_that_it_names() {
    let dir = TempDir::new().unwrap();
    let access = dir.path().join("access.yaml");
    fs::write(&access, "tenants: 3\n").unwrap();
    let path = file(
        &dir,
        &format!(
            "max-retires = 3\nspark-defaults = \"/nowhere.conf\"\naccess-file = \"{}\"\nlog = \"=,=\"\n\
             encryption-key-file = \"/nowhere.keys\"\nlisten = \"0.0.0.0:1\"\nkubeconfig = \"/nowhere.kubeconfig\"\n",
            access.display()
        ),
    );
    let mut command = sparkgate();
    command.args(["config", "check"]).env("SPARKGATE_CONFIG_FILE", &path);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318").env("OTEL_TRACES_SAMPLER", "sometimes");
    let output = run(&mut command);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "OTEL_TRACES_SAMPLER=sometimes",
        "did you mean `max-retries`?",
        "/nowhere.conf (--spark-defaults)",
        "toml:2: `spark-defaults` is set here",
        "toml:3: `access-file` is set here",
        "--log \"=,=\" is not a filter",
        "reading the encryption key file /nowhere.keys",
        "toml:5: `encryption-key-file` is set here",
        "refusing to listen on 0.0.0.0:1 without TLS",
        "no Kubernetes cluster is configured",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let path = file(&dir, "spark-defaults = \"/nowhere.conf\"\nlisten = \"0.0.0.0:1\"\ntrusted-network = true\n");
    let said = text(&config(&["check"], &path).stdout);
    assert!(said.contains("/nowhere.conf") && said.contains("warning: there is no access file"), "{said}");
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "max-retries = 7\n");
    let mut command = sparkgate();
    let empty = ["LIVY_LISTEN", "TLS_KEY", "ACCESS_FILE", "FILES_URL", "MAX_RETRIES", "TRUSTED_NETWORK", "RETENTION"];
    command.envs(empty.map(|name| (format!("SPARKGATE_{name}"), "")));
    let output = run(command.args(["config", "show", "--json", "--config"]).arg(&path));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let setting = |name: &str| shown["settings"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    assert_eq!((&setting("max-retries")["value"], &setting("max-retries")["origin"]["line"]), (&"7".into(), &1.into()));
    assert_eq!(setting("livy-listen")["value"], Value::Null);
    assert_eq!(setting("retention")["origin"]["kind"], "default");
    let output = run(sparkgate().args(["serve", "--help"]).env("SPARKGATE_MAX_RETRIES", ""));
    assert!(output.status.success());
}

#[test]
fn a_check_of_a_good_file_succeeds_without_a_database() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "listen = \"127.0.0.1:7000\"\nnamespaces = [\"a\", \"b\"]\n");
    for output in [config(&["check"], &path), run(sparkgate().args(["config", "check"]).arg(&path))] {
        let said = text(&output.stdout);
        assert!(output.status.success() && said.contains("the settings can be used"), "{said}");
    }
}

#[test]
fn each_setting_is_shown_with_its_origin_and_secrets_are_hidden() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "database-url = \"postgres://u:SEKRETPW@h/d\"\nmax-retries = 3\nmax-connections = 9\n");
    let mut command = sparkgate();
    command.args(["config", "show", "--json", "--max-connections", "10", "--config"]).arg(&path);
    command.env("SPARKGATE_MAX_SUBSCRIBERS", "11").env("SPARKGATE_MAX_RETRIES", "4");
    let output = run(&mut command);
    let said = text(&output.stdout);
    assert!(output.status.success() && !said.contains("SEKRETPW"), "{said}{}", text(&output.stderr));
    let shown: Value = serde_json::from_str(&said).unwrap();
    let setting = |name: &str| {
        let mut all = shown["settings"].as_array().unwrap().iter();
        all.find(|setting| setting["name"] == name).unwrap_or_else(|| panic!("{name}: {said}"))
    };
    for (name, value, kind) in [
        ("max-connections", "10", "flag"),
        ("max-retries", "4", "variable"),
        ("max-subscribers", "11", "variable"),
        ("database-url", "(hidden)", "file"),
        ("retention", "90d", "default"),
        ("log", "info", "default"),
    ] {
        assert_eq!(
            (setting(name)["value"].as_str(), setting(name)["origin"]["kind"].as_str()),
            (Some(value), Some(kind))
        );
    }
    assert_eq!(setting("database-url")["origin"]["line"], 1);
    assert_eq!(setting("max-retries")["origin"]["name"], "SPARKGATE_MAX_RETRIES");
    let lines = text(&config(&["show"], &path).stdout);
    assert!(
        lines.lines().any(|line| line.starts_with("max-retries ") && line.ends_with("sparkgate.toml:2")),
        "{lines}"
    );
    assert!(!lines.contains("SEKRETPW"), "{lines}");
}
