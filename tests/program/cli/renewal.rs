//! Access tokens that end: they are renewed, once.

use std::{
    fs,
    process::Stdio,
    sync::{Mutex, mpsc::channel},
    thread,
};

use chrono::TimeDelta;

use crate::cli::{
    issuer::{ID, gateway, grant, issuer, logged_in, refusal, tokens},
    played::{Played, Reply},
    run::Ended,
};

#[test]
fn a_token_that_ends_soon_is_renewed_and_stored() {
    let issuer = issuer(|_| grant(1));
    let gateway = gateway(&[]);
    let user = logged_in(&gateway, &issuer.url(), TimeDelta::seconds(20));
    for _ in 0..2 {
        let ended = user.run(&["status", ID]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    }
    assert_eq!(tokens(&gateway), [Some("Bearer access-1".to_owned()), Some("Bearer access-1".to_owned())]);
    let asked = issuer.asked();
    assert_eq!(asked.len(), 2, "the metadata and the token");
    assert_eq!(asked[1].body, "grant_type=refresh_token&refresh_token=refresh-0&client_id=sparkgate-cli");
    let stored = fs::read_to_string(user.credentials()).unwrap();
    assert!(stored.contains("refresh-1") && !stored.contains("refresh-0"), "{stored}");
    assert_eq!(user.mode(".config/sparkgate/credentials.yaml"), 0o600);
}

#[test]
fn a_token_that_lasts_is_sent_without_the_provider() {
    let gateway = gateway(&[]);
    let user = logged_in(&gateway, "http://127.0.0.1:1", TimeDelta::seconds(600));
    assert_eq!(user.run(&["status", ID]).code, Some(0));
    assert_eq!(tokens(&gateway), [Some("Bearer access-0".to_owned())]);
}

#[test]
fn a_login_that_is_not_renewed_has_ended() {
    let issuer = issuer(|_| refusal("invalid_grant"));
    let gateway = gateway(&[]);
    let user = logged_in(&gateway, &issuer.url(), TimeDelta::seconds(-5));
    let ended = user.run(&["status", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    for part in ["the login of the context `prod` has ended", "invalid_grant", "run `sparkgate login --context prod`"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("refresh-0") && gateway.asked().is_empty(), "{}", ended.stderr);

    let text = fs::read_to_string(user.credentials()).unwrap();
    user.write(".config/sparkgate/credentials.yaml", &text.replace("refreshToken: refresh-0", ""), 0o600);
    let ended = user.run(&["status", ID]);
    assert!(ended.stderr.contains("has ended: run `sparkgate login"), "{}", ended.stderr);
}

#[test]
fn a_provider_that_is_away_matters_only_when_the_token_has_ended() {
    let away = Played::new(|_| Reply::HangUp);
    let gateway = gateway(&[]);
    let user = logged_in(&gateway, &away.url(), TimeDelta::seconds(25));
    assert_eq!(user.run(&["status", ID]).code, Some(0));
    assert_eq!(tokens(&gateway), [Some("Bearer access-0".to_owned())]);
    let user = logged_in(&gateway, &away.url(), TimeDelta::seconds(-1));
    let ended = user.run(&["status", ID]);
    assert!(ended.code == Some(1) && ended.stderr.contains(&away.url()), "{}", ended.stderr);
}

#[test]
fn a_login_is_for_the_gateway_that_it_was_made_for() {
    let (first, second) = (gateway(&[]), gateway(&[]));
    let user = logged_in(&first, "http://127.0.0.1:1", TimeDelta::hours(1));
    user.write_config(&format!("current: prod\ncontexts:\n  prod: {{server: '{}'}}\n", second.url()));
    assert_eq!(user.run(&["status", ID]).code, Some(0));
    assert_eq!(tokens(&second), [None]);
}

#[test]
fn credentials_that_others_can_read_are_refused() {
    let gateway = gateway(&[]);
    let user = logged_in(&gateway, "http://127.0.0.1:1", TimeDelta::hours(1));
    let text = fs::read_to_string(user.credentials()).unwrap();
    user.write(".config/sparkgate/credentials.yaml", &text, 0o640);
    let ended = user.run(&["status", ID]);
    assert!(ended.code == Some(1) && ended.stderr.contains("chmod 600"), "{}", ended.stderr);
    assert!(gateway.asked().is_empty());
}

#[test]
fn of_two_commands_at_once_one_renews_the_token() {
    let (release, released) = channel::<()>();
    let (arrive, arrived) = channel();
    let (released, arrive) = (Mutex::new(released), Mutex::new(arrive));
    let issuer = issuer(move |asked| {
        arrive.lock().unwrap().send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        // A refresh token is accepted once.
        if asked.body.contains("refresh-0") && asked.before == 0 { grant(1) } else { refusal("invalid_grant") }
    });
    let gateway = gateway(&[]);
    let user = logged_in(&gateway, &issuer.url(), TimeDelta::seconds(-1));
    let start = || user.command(&["status", ID]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = start();
    arrived.recv().unwrap();
    let second = start();
    // The second one has read the old token when it opens the lock.
    let lock = user.credentials().with_file_name("credentials.lock");
    let has_lock_open = || {
        let files = fs::read_dir(format!("/proc/{}/fd", second.id())).into_iter().flatten().flatten();
        files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|path| path == lock))
    };
    while !has_lock_open() {
        thread::yield_now();
    }
    release.send(()).unwrap();
    for child in [first, second] {
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    assert_eq!(tokens(&gateway), [Some("Bearer access-1".to_owned()), Some("Bearer access-1".to_owned())]);
    assert_eq!(issuer.asked().iter().filter(|asked| asked.what == "POST /token").count(), 1);
}
