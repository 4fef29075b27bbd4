//! `sparkgate login` and `logout`.

use std::{fs, os::unix::fs::PermissionsExt};

use chrono::TimeDelta;
use serde_json::json;

use crate::cli::{
    issuer::{ID, device, gateway, grant, issuer, logged_in, metadata, refusal, tokens},
    played::{Played, Reply, json_answer, problem},
    terminal::in_terminal,
    user::User,
};

#[test]
fn login_polls_until_the_code_is_confirmed_and_its_token_is_sent() {
    // `slow_down` costs five seconds.
    let issuer = issuer(|asked| match asked.before {
        0 => refusal("authorization_pending"),
        1 => refusal("slow_down"),
        _ => grant(1),
    });
    let gateway = gateway(&[("corp", issuer.url())]);
    let user = User::with_context("prod", &gateway.url());
    let ended = user.run_with(&["login"], &[("SPARKGATE_TOKEN", "other")]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(
        lines[0],
        format!("Open {}/verify?code=ABCD-EFGH in a browser, and confirm the code ABCD-EFGH.", issuer.url())
    );
    assert_eq!(lines[1], format!("logged in to {} (context `prod`)", gateway.url()));
    assert!(lines[2].contains("SPARKGATE_TOKEN"), "{}", lines[2]);
    assert!(!gateway.asked()[0].headers.contains_key("authorization"), "GET /v1/login needs none");
    let bodies: Vec<String> = issuer.asked().into_iter().map(|asked| asked.body).collect();
    let poll =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=d3vice&client_id=sparkgate-cli";
    assert_eq!(bodies, ["", "scope=openid+profile+offline_access&client_id=sparkgate-cli", poll, poll, poll]);
    assert_eq!(user.mode(".config/sparkgate/credentials.yaml"), 0o600);

    assert_eq!(user.run(&["status", ID]).code, Some(0));
    assert_eq!(tokens(&gateway), [Some("Bearer access-1".to_owned())]);
    let shown = user.run(&["whoami"]).stdout;
    assert!(shown.contains("from the login of the context `prod`\n") && shown.contains("(in 59m"), "{shown}");
    assert!(user.run(&["context", "list"]).stdout.contains("login"));
}

#[test]
fn a_login_that_fails_stores_nothing() {
    for (error, part) in [
        ("access_denied", "the login was denied"),
        ("expired_token", "the code has expired: run `sparkgate login` again"),
        ("invalid_client", "the login was refused: invalid_client: said the provider"),
    ] {
        let issuer = issuer(move |_| refusal(error));
        let gateway = gateway(&[("corp", issuer.url())]);
        let user = User::with_context("prod", &gateway.url());
        let ended = user.run(&["login"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{error}");
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
        assert!(!user.credentials().exists());
    }
}

#[test]
fn a_provider_without_offline_access_is_asked_for_less() {
    let issuer = Played::new(|asked| {
        let url = format!("http://{}", asked.headers["host"]);
        match asked.what.as_str() {
            "POST /device" if asked.body.contains("offline_access") => refusal("invalid_scope"),
            "POST /device" => json_answer(200, &device(&url)),
            "POST /token" => json_answer(200, &json!({"access_token": "a", "token_type": "Bearer", "expires_in": 60})),
            _ => json_answer(200, &metadata(&url)),
        }
    });
    let gateway = gateway(&[("corp", issuer.url())]);
    let ended = User::with_context("prod", &gateway.url()).run(&["login"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("(context `prod`) until 20"), "it can't be renewed: {}", ended.stderr);
}

#[test]
fn one_of_several_providers_is_chosen_by_name_or_url() {
    let (corp, lab) = (issuer(|_| grant(1)), issuer(|_| grant(2)));
    let gateway = gateway(&[("corp", corp.url()), ("lab", lab.url())]);
    let user = User::with_context("prod", &gateway.url());
    let ended = user.run(&["login"]);
    let names = format!("corp ({}), lab ({})", corp.url(), lab.url());
    assert!(ended.code == Some(1) && ended.stderr.contains(&format!("--issuer: {names}")), "{}", ended.stderr);
    let ended = user.run(&["login", "--issuer", "other"]);
    assert!(ended.stderr.contains(&format!("doesn't trust the provider other, but {names}")), "{}", ended.stderr);
    for (asked, token) in [("lab".to_owned(), "access-2"), (corp.url() + "/", "access-1")] {
        assert_eq!(user.run(&["login", "--issuer", &asked]).code, Some(0));
        assert!(fs::read_to_string(user.credentials()).unwrap().contains(token), "{asked}");
    }
}

#[test]
fn a_gateway_or_provider_without_a_login_is_reported() {
    let user = |gateway: &Played| User::with_context("prod", &gateway.url());
    let none = Played::new(|_| problem(404, "not-found", "Not found", "There is no such path."));
    for gateway in [none, gateway(&[])] {
        let ended = user(&gateway).run(&["login"]);
        assert!(ended.code == Some(1) && ended.stderr.contains("this gateway offers no login"), "{}", ended.stderr);
    }
    let without = |missing: &'static str| {
        Played::new(move |asked| {
            let mut metadata = metadata(&format!("http://{}", asked.headers["host"]));
            metadata.as_object_mut().unwrap().remove(missing);
            json_answer(200, &metadata)
        })
    };
    let impostor = Played::new(|_| json_answer(200, &metadata("http://127.0.0.1:1")));
    let plain = Played::new(|asked| {
        let mut metadata = metadata(&format!("http://{}", asked.headers["host"]));
        metadata["token_endpoint"] = json!("http://id.example/token");
        json_answer(200, &metadata)
    });
    let away = Played::new(|_| Reply::HangUp);
    for (issuer, part) in [
        (without("device_authorization_endpoint"), "has no device flow"),
        (without("token_endpoint"), "missing field `token_endpoint`"),
        (impostor, "it says that it is http://127.0.0.1:1"),
        (plain, "no token is sent to http://id.example/token"),
        (away, "the connection broke"),
    ] {
        let ended = user(&gateway(&[("corp", issuer.url())])).run(&["login"]);
        assert!(ended.code == Some(1) && ended.stderr.contains(part), "{}", ended.stderr);
        assert!(issuer.asked().iter().all(|asked| asked.what.starts_with("GET")), "no secret was sent");
    }
    let plain = gateway(&[("corp", "http://id.example".to_owned())]);
    let ended = user(&plain).run(&["login"]);
    assert!(ended.stderr.contains("expected an https URL"), "{}", ended.stderr);
}

#[test]
fn a_login_needs_a_context_and_a_private_connection() {
    let gateway = gateway(&[]);
    let ended = User::new().run(&["login", "--server", &gateway.url()]);
    assert!(ended.stderr.contains("sparkgate context set NAME --server http://127"), "{}", ended.stderr);
    let ended = User::with_context("prod", "http://gateway.example:6066").run(&["login"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("use an https URL"), "{}", ended.stderr);
    assert!(gateway.asked().is_empty());
}

#[test]
fn a_browser_is_opened_in_a_terminal_only() {
    let issuer = issuer(|_| grant(1));
    let gateway = gateway(&[("corp", issuer.url())]);
    let user = User::with_context("prod", &gateway.url());
    let opened = user.path("opened");
    let script = format!("#!/bin/sh\necho \"$#\" \"$1\" > {0}.new && mv {0}.new {0}\n", opened.display());
    let browser = user.write("bin/xdg-open", &script, 0o755);
    assert_eq!(fs::metadata(&browser).unwrap().permissions().mode() & 0o111, 0o111);
    let path = format!("{}:/usr/bin:/bin", user.path("bin").display());
    assert_eq!(user.run_with(&["login"], &[("PATH", &path)]).code, Some(0));
    let mut login = user.command(&["login", "--no-browser"]);
    assert!(in_terminal(login.env("PATH", &path)).contains("logged in"));
    assert!(!opened.exists());
    let mut login = user.command(&["login"]);
    assert!(in_terminal(login.env("PATH", &path)).contains("logged in"));
    while !opened.exists() {
        std::thread::yield_now();
    }
    assert_eq!(fs::read_to_string(opened).unwrap(), format!("1 {}/verify?code=ABCD-EFGH\n", issuer.url()));
}

#[test]
fn logout_deletes_and_revokes_the_tokens() {
    let issuer = issuer(|_| grant(1));
    let gateway = gateway(&[]);
    let user = logged_in(&gateway, &issuer.url(), TimeDelta::hours(1));
    let ended = user.run(&["logout"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "logged out of the context `prod`\n"));
    let revoked: Vec<String> =
        issuer.asked().into_iter().filter(|asked| asked.what == "POST /revoke").map(|asked| asked.body).collect();
    assert_eq!(
        revoked,
        [
            "token=refresh-0&token_type_hint=refresh_token&client_id=sparkgate-cli",
            "token=access-0&token_type_hint=access_token&client_id=sparkgate-cli"
        ]
    );
    assert!(!fs::read_to_string(user.credentials()).unwrap().contains("access-0"));
    assert_eq!(user.run(&["status", ID]).code, Some(0));
    assert_eq!(tokens(&gateway), [None]);
    assert_eq!(user.run(&["logout"]).stderr, "there is no login of the context `prod`\n");
}

#[test]
fn logout_deletes_the_tokens_even_if_they_are_not_revoked() {
    let away = Played::new(|_| Reply::HangUp);
    let user = logged_in(&gateway(&[]), &away.url(), TimeDelta::hours(1));
    let ended = user.run(&["logout"]);
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("valid until they end"), "{}", ended.stderr);
    assert!(!fs::read_to_string(user.credentials()).unwrap().contains("access-0"));
}

#[test]
fn a_deleted_context_takes_its_login_along() {
    let user = logged_in(&gateway(&[]), "http://127.0.0.1:1", TimeDelta::hours(1));
    let ended = user.run(&["context", "delete", "prod"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "the context `prod` and its login are deleted\n"));
    assert!(!fs::read_to_string(user.credentials()).unwrap().contains("access-0"));
}
