//! The way to the gateway: proxies, certificates, tokens.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    thread,
};

use axum::{Json, Router};
use sparkgate::api::{ServerSettings, Tls, TlsFiles, serve};
use sparkgate_testing::SelfSigned;
use tokio_util::sync::CancellationToken;

use crate::{
    played::{Played, json_answer, submission},
    run::{Ended, command, ended},
};

const ID: &str = "driver-20260102030405-0001";
const ELSEWHERE: &str = "http://gateway.example:6066";

fn status(url: &str, variables: &[(&str, &str)]) -> Ended {
    ended(command(url, &["status", ID]).envs(variables.iter().copied()).output().unwrap())
}

fn running() -> Played {
    Played::new(|_| json_answer(200, &submission(ID, "RUNNING")))
}

#[test]
fn the_proxy_of_the_environment_is_used_but_for_this_machine() {
    let proxy = running();
    let ended = status(ELSEWHERE, &[("HTTP_PROXY", &proxy.url())]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(proxy.asked()[0].what.starts_with(&format!("GET {ELSEWHERE}/v1/submissions/")), "{:?}", proxy.asked()[0]);

    let (gateway, count) = (running(), proxy.asked().len());
    assert_eq!(status(&gateway.url(), &[("HTTP_PROXY", &proxy.url())]).code, Some(0));
    assert_eq!(proxy.asked().len(), count);
    let ended = status(ELSEWHERE, &[("HTTP_PROXY", &proxy.url()), ("NO_PROXY", "gateway.example")]);
    assert!(ended.stderr.contains("no gateway answers"), "{}", ended.stderr);
}

#[test]
fn a_token_is_sent_to_this_machine_but_not_over_plain_http_elsewhere() {
    let gateway = running();
    assert_eq!(status(&gateway.url(), &[("SPARKGATE_TOKEN", "s3cret\n")]).code, Some(0));
    assert_eq!(gateway.asked()[0].headers["authorization"], "Bearer s3cret");

    let proxy = running();
    let ended = status(ELSEWHERE, &[("SPARKGATE_TOKEN", "s3cret"), ("HTTP_PROXY", &proxy.url())]);
    assert_eq!((ended.code, proxy.asked().len()), (Some(1), 0));
    assert!(ended.stderr.contains("use an https URL") && !ended.stderr.contains("s3cret"), "{}", ended.stderr);
    let help = command("", &["status", "--help"]).env("SPARKGATE_TOKEN", "s3cret").output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("s3cret"));
}

#[test]
fn a_certificate_is_trusted_if_a_file_names_its_authority() {
    let folder = tempfile::tempdir().unwrap();
    let address = tls_gateway(folder.path());
    let file = folder.path().join("certificate.pem");
    let file = file.to_str().unwrap();
    let url = format!("https://{address}");
    let ended = status(&url, &[("SPARKGATE_CA_FILE", file)]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // The system's certificates are in a file of one other authority.
    let other = folder.path().join("other.pem");
    let certificate = rcgen::generate_simple_self_signed(vec!["other.example".to_owned()]).unwrap().cert.pem();
    std::fs::write(&other, certificate).unwrap();
    let ended = status(&url, &[("SSL_CERT_FILE", other.to_str().unwrap())]);
    assert!(ended.code == Some(1) && ended.stderr.contains("certificate"), "{}", ended.stderr);

    std::fs::write(file, "no certificate").unwrap();
    let ended = status(&url, &[("SPARKGATE_CA_FILE", file)]);
    assert!(ended.stderr.contains("it has no certificate in PEM format"), "{}", ended.stderr);
    let ended = status(&url, &[("SPARKGATE_CA_FILE", "/nowhere.pem")]);
    assert!(ended.stderr.contains("--ca-file /nowhere.pem: No such file"), "{}", ended.stderr);
}

/// Starts the gateway's listener with TLS. Its certificate is `certificate.pem` of this folder.
fn tls_gateway(folder: &Path) -> SocketAddr {
    let SelfSigned { certificate, key, .. } = SelfSigned::create();
    let files = TlsFiles { certificate: folder.join("certificate.pem"), key: folder.join("key.pem"), client_ca: None };
    std::fs::write(&files.certificate, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = async move {
        let tls = Tls::load(files).await.unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let router = Router::new().fallback(async || Json(submission(ID, "RUNNING")));
        let settings = ServerSettings { tls: Some(tls), ..ServerSettings::default() };
        serve(listener, router, settings, CancellationToken::new()).await;
    };
    thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(serving));
    address
}
