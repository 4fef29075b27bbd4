//! `sparkgate context`, and which gateway a command calls.

use std::{fs, path::Path};

use crate::cli::{
    played::{Played, json_answer, submission},
    user::User,
};

const ID: &str = "driver-20260102030405-0001";

fn gateway() -> Played {
    Played::new(|_| json_answer(200, &submission(ID, "RUNNING")))
}

#[test]
fn contexts_are_set_used_listed_and_deleted() {
    let user = User::new();
    let ended = user.run(&["context", "list"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "CURRENT  NAME  SERVER  TOKEN\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("sparkgate context set NAME --server URL"), "{}", ended.stderr);

    let ended = user.run(&["context", "set", "prod", "--server", "https://gate.example/"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    assert_eq!(ended.stderr, "the context `prod` is set, and is now the current one\n");
    let words = ["context", "set", "test", "--server", "localhost:6066", "--token-file", "t", "--ca-file", "/ca.pem"];
    assert_eq!(user.run(&words).stderr, "the context `test` is set\n");
    assert_eq!((user.mode(".config/sparkgate/config.yaml"), user.mode(".config/sparkgate")), (0o600, 0o700));
    let token_file = std::env::current_dir().unwrap().join("t");
    assert!(fs::read_to_string(user.config()).unwrap().contains(token_file.to_str().unwrap()), "it is absolute");

    assert_eq!(
        user.run(&["context", "list"]).stdout,
        "CURRENT  NAME  SERVER                 TOKEN\n*        prod  https://gate.example\n         \
         test  http://localhost:6066  file\n"
    );
    assert_eq!(user.run(&["context", "use", "test"]).code, Some(0));
    // A setting that isn't given stays.
    assert_eq!(user.run(&["context", "set", "test", "--server", "https://test.example"]).code, Some(0));
    user.write("token", "s3cret", 0o600);
    user.run(&["context", "set", "test", "--token-file", user.path("token").to_str().unwrap()]);
    let shown = user.run(&["context", "show"]).stdout;
    for line in ["Context:     test\n", "Server:      https://test.example\n", "CA file:     /ca.pem\n"] {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(shown.contains(&format!("from the file {}", user.path("token").display())), "{shown}");
    assert!(user.run(&["context", "show", "--context", "prod"]).stdout.contains("https://gate.example\n"));

    assert_eq!(user.run(&["context", "delete", "test"]).stderr, "the context `test` is deleted\n");
    assert!(!fs::read_to_string(user.config()).unwrap().contains("test"));
    let shown = user.run(&["context", "show"]).stdout;
    assert!(shown.contains("http://127.0.0.1:6066") && !shown.contains("Context:"), "{shown}");
}

#[test]
fn options_precede_the_environment_and_it_precedes_the_current_context() {
    let (current, other, by_url) = (gateway(), gateway(), gateway());
    let user = User::new();
    user.write_config(&format!(
        "current: current\ncontexts:\n  current: {{server: '{}'}}\n  other: {{server: '{}'}}\n",
        current.url(),
        other.url()
    ));
    let url = by_url.url();
    let (by_variable, by_name) = (("SPARKGATE_URL", url.as_str()), ("SPARKGATE_CLIENT_CONTEXT", "other"));
    for (options, variables, called) in [
        (&[][..], &[][..], &current),
        (&[], &[by_name], &other),
        (&[], &[("SPARKGATE_CLIENT_CONTEXT", ""), ("SPARKGATE_URL", "")], &current),
        (&[], &[by_variable], &by_url),
        (&[], &[by_variable, by_name], &by_url),
        (&["--context", "other"], &[by_variable], &other),
        (&["--context", "current"], &[by_name], &current),
        (&["--server", &url], &[by_name], &by_url),
        (&["--server", &url, "--context", "other"], &[], &by_url),
    ] {
        let count = called.asked().len();
        let ended = user.run_with(&[&["status", ID], options].concat(), variables);
        assert_eq!(ended.code, Some(0), "{options:?} {variables:?}: {}", ended.stderr);
        assert_eq!(called.asked().len(), count + 1, "{options:?} {variables:?}");
    }
}

#[test]
fn the_token_of_a_context_is_for_its_gateway_only() {
    let (own, other) = (gateway(), gateway());
    let user = User::new();
    user.write_config(&format!("current: own\ncontexts:\n  own: {{server: '{}', token: s3cret}}\n", own.url()));
    for (words, gateway, token) in [
        (&["status", ID][..], &own, Some("Bearer s3cret")),
        (&["status", ID, "--server", &own.url()], &own, Some("Bearer s3cret")),
        (&["status", ID, "--server", &other.url()], &other, None),
        (&["status", ID, "--server", &other.url(), "--context", "own"], &other, None),
    ] {
        let ended = user.run(words);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let asked = gateway.asked().pop().unwrap();
        assert_eq!(asked.headers.get("authorization").map(String::as_str), token, "{words:?}");
    }
    // One of the environment precedes it.
    assert_eq!(user.run_with(&["status", ID], &[("SPARKGATE_TOKEN", "mine")]).code, Some(0));
    assert_eq!(own.asked().pop().unwrap().headers["authorization"], "Bearer mine");
}

#[test]
fn a_configuration_with_a_token_that_others_can_read_is_refused() {
    let gateway = gateway();
    let user = User::new();
    let text = |token: &str| format!("current: own\ncontexts:\n  own: {{server: '{}'{token}}}\n", gateway.url());
    user.write(".config/sparkgate/config.yaml", &text(""), 0o644);
    assert_eq!(user.run(&["status", ID]).code, Some(0), "without a token, it may be public");
    user.write(".config/sparkgate/config.yaml", &text(", token: s3cret"), 0o644);
    let ended = user.run(&["status", ID]);
    assert_eq!((ended.code, gateway.asked().len()), (Some(1), 1));
    assert!(ended.stderr.contains(&format!("chmod 600 {}", user.config().display())), "{}", ended.stderr);
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
    // A command that writes the file makes it private.
    assert_eq!(user.run(&["context", "use", "own"]).code, Some(0));
    assert_eq!(user.run(&["status", ID]).code, Some(0));
}

#[test]
fn a_context_that_does_not_exist_is_named() {
    let user = User::new();
    let config = user.config();
    let missing = format!("there is no context `prod` in {}: it has none", config.display());
    for words in [&["status", ID, "--context", "prod"][..], &["context", "use", "prod"], &["context", "delete", "prod"]]
    {
        let ended = user.run(words);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
        assert!(ended.stderr.contains(&missing), "{words:?}: {}", ended.stderr);
    }
    assert!(!config.exists(), "nothing is written");
    let ended = user.run(&["context", "set", "prod"]);
    assert!(ended.stderr.contains("give --server URL"), "{}", ended.stderr);
    user.write_config("current: prod\ncontexts:\n  test: {server: 'https://test.example'}\n");
    let ended = user.run(&["status", ID]);
    assert!(ended.stderr.contains("it has test. Create it"), "{}", ended.stderr);
    for (words, part) in [
        (&["context", "set", "a/b", "--server", "https://x"][..], "letters, digits"),
        (&["status", ID, "--context", "a b"], "letters, digits"),
        (&["context", "set", "a", "--server", "ftp://x"], "http://host:port"),
    ] {
        let ended = user.run(words);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}

#[test]
fn a_misspelt_setting_is_named_with_its_line() {
    let user = User::new();
    user.write_config("contexts:\n  prod:\n    server: https://gate.example\n    caFlie: ca.pem\n");
    let ended = user.run(&["status", ID]);
    assert_eq!(ended.code, Some(1));
    for part in ["config.yaml", "line 4", "caFlie"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

#[test]
fn without_a_home_only_contexts_are_missing() {
    let gateway = gateway();
    let mut status = User::new().command(&["status", ID, "--server", &gateway.url()]);
    assert!(status.env_remove("HOME").output().unwrap().status.success());
    let output = User::new().command(&["context", "list"]).env_remove("HOME").output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("Set SPARKGATE_CONFIG to a file"));
    // A path in the file is relative to it.
    let user = User::new();
    let file = user.write(
        "elsewhere/gates.yaml",
        &format!("current: a\ncontexts:\n  a: {{server: '{}', tokenFile: t}}\n", gateway.url()),
        0o600,
    );
    user.write("elsewhere/t", "s3cret\n", 0o600);
    let mut status = user.command(&["status", ID]);
    status.env_remove("HOME").env("SPARKGATE_CONFIG", &file).current_dir(Path::new("/"));
    let output = status.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(gateway.asked().pop().unwrap().headers["authorization"], "Bearer s3cret");
}
