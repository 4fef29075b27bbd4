use std::{fs, path::Path};

use tempfile::TempDir;

use super::*;

/// Combines a command line with a file. The variables of the test's own environment have other names than these settings'.
fn load(dir: &TempDir, file: &str, arguments: &[&str]) -> Result<Loaded, LoadError> {
    let path = dir.path().join("s.toml");
    fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap();
    let arguments = arguments.iter().map(|argument| argument.replace("FILE", path));
    Arguments::new(["sparkgate".to_owned()].into_iter().chain(arguments).map(OsString::from)).load()
}

fn origin(loaded: &Loaded, name: &str) -> (String, String) {
    let setting = loaded.settings.0.iter().find(|setting| setting.name == name).unwrap();
    let origin = setting.origin.to_string();
    (setting.values.join(","), origin.rsplit('/').next().unwrap_or_default().to_owned())
}

#[test]
fn an_option_precedes_the_file_and_the_file_the_default() {
    let dir = TempDir::new().unwrap();
    let file = "database-url = \"postgres://u@h/d\"\nmax-retries = 3\nmax-subscribers = 5\nnamespaces = [\"a\", \"b\"]\n\
                log = \"debug\"\noutcome-finalizer = false\ntrusted-network = true\n";
    for before in [["--log-format", "json", "serve"].as_slice(), &["serve"]] {
        let line = [before, &["--config", "FILE", "--max-retries", "7"]].concat();
        let loaded = load(&dir, file, &line).unwrap();
        let expected = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
        assert_eq!(origin(&loaded, "max-retries"), expected("7", "flag"));
        assert_eq!(origin(&loaded, "max-subscribers"), expected("5", "s.toml:3"));
        assert_eq!(origin(&loaded, "namespaces"), expected("a,b", "s.toml:4"));
        assert_eq!(origin(&loaded, "kept-log"), expected("256KiB", "default"));
        let format = if before.len() > 1 { expected("json", "flag") } else { expected("text", "default") };
        assert_eq!(origin(&loaded, "log-format"), format);
        let (serve, logs) = loaded.cli.into_serve().unwrap();
        assert_eq!(serve.limits.settings().retries, Some(7));
        assert_eq!(serve.http.max_subscribers, 5);
        assert_eq!(serve.kubernetes.place.namespaces, ["a", "b"]);
        assert!(!serve.kubernetes.outcome_finalizer && serve.http.trusted_network);
        assert_eq!(logs.filter, "debug");
    }
}

#[test]
fn options_that_need_each_other_may_come_from_the_file_and_the_command_line() {
    let dir = TempDir::new().unwrap();
    let file = "database-url = \"postgres://u@h/d\"\ntls-certificate = \"/c\"\n";
    let (serve, _) =
        load(&dir, file, &["serve", "--config", "FILE", "--tls-key", "/k"]).unwrap().cli.into_serve().unwrap();
    assert_eq!(serve.http.tls_certificate.as_deref(), Some(Path::new("/c")));
    match load(&dir, file, &["serve", "--config", "FILE"]) {
        Err(LoadError::CommandLine { error, notes }) => {
            assert!(error.to_string().contains("--tls-key"), "{error}");
            assert!(notes.contains("s.toml:2: `tls-certificate` is set here"), "{notes}");
        }
        _ => panic!("the key is missing"),
    }
}

#[test]
fn other_commands_take_their_settings_from_the_file() {
    let dir = TempDir::new().unwrap();
    let file = "database-url = \"postgres://u@h/d\"\naccess-file = \"/access.yaml\"\nmax-retries = 3\n";
    for command in ["migrate", "admission", "bootstrap-key", "adopt-cluster", "release-finalizers", "render"] {
        assert!(load(&dir, file, &[command, "--config", "FILE"]).is_ok(), "{command}");
    }
    assert!(load(&dir, file, &["dev", "--config", "FILE"]).is_err(), "dev has no database of others");
    assert!(load(&dir, file, &["list", "--config", "FILE"]).is_err());
    assert!(load(&dir, "", &["migrate", "--config", "FILE"]).is_err(), "the database is required");
    assert!(load(&dir, "", &["config", "show", "--config", "FILE"]).is_ok(), "it isn't for a list");
}

#[test]
fn a_faulty_file_is_an_error_but_for_the_check() {
    let dir = TempDir::new().unwrap();
    let file = "max-retires = 3\nmax-retries = 4\n";
    match load(&dir, file, &["serve", "--config", "FILE"]) {
        Err(LoadError::File(faults)) => assert!(faults.to_string().contains("did you mean `max-retries`?"), "{faults}"),
        _ => panic!("not refused"),
    }
    let checked = load(&dir, file, &["config", "check", "FILE"]).unwrap();
    assert_eq!((checked.faults.len(), origin(&checked, "max-retries").0), (1, "4".to_owned()));
}

#[test]
fn a_change_is_seen_by_name() {
    let dir = TempDir::new().unwrap();
    let of = |file: &str| load(&dir, file, &["config", "show", "--config", "FILE"]).unwrap().settings;
    let (before, after) = (of("max-retries = 3\nlog = \"info\"\n"), of("\n\nmax-retries = 4\nlog = \"info\"\n"));
    assert_eq!(before.changes(&after).collect::<Vec<_>>(), ["max-retries"]);
}
