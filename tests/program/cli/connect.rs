//! The way to the gateway: proxies, certificates, tokens.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
};

use rcgen::CertifiedKey;
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};

use crate::cli::{
    played::{Played, json_answer, submission},
    run::{Ended, command},
    user::User,
};

const ID: &str = "driver-20260102030405-0001";
const ELSEWHERE: &str = "http://gateway.example:6066";

fn status(url: &str, variables: &[(&str, &str)]) -> Ended {
    Ended::from(command(url, &["status", ID]).envs(variables.iter().copied()).output().unwrap())
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
    let (address, certificate) = tls_gateway();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, certificate).unwrap();
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

#[test]
fn a_client_certificate_is_shown_to_the_gateway() {
    let user = User::new();
    let (address, certificate) = tls_gateway_for(Some(&authority_of(&user)));
    let ca_file = user.write("ca.pem", &certificate, 0o644);
    let url = format!("https://{address}");
    let path = |name| user.path(name).to_str().unwrap().to_owned();
    let (own, key) = (path("alice.pem"), path("alice.key"));
    let with = |options: &[&str]| {
        let words = ["status", ID, "--server", &url, "--ca-file", ca_file.to_str().unwrap()];
        user.run(&[&words[..], options].concat())
    };
    let ended = with(&[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "the gateway asks for one");
    let ended = with(&["--certificate", &own, "--key", &key]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // Of a context, and in one file.
    let both = fs::read_to_string(&own).unwrap() + &fs::read_to_string(&key).unwrap();
    user.write(".config/sparkgate/both.pem", &both, 0o600);
    let context = format!("{{server: '{url}', caFile: '{}', certificate: both.pem}}", ca_file.display());
    user.write_config(&format!("current: own\ncontexts:\n  own: {context}\n"));
    let ended = user.run(&["status", ID]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    for (options, part) in [
        (&["--certificate", &own][..], "expected a certificate and its private key"),
        (&["--certificate", &own, "--key", "/nowhere.key"], "--key /nowhere.key: No such file"),
        (&["--certificate", "/nowhere.pem", "--key", &key], "--certificate /nowhere.pem: No such file"),
    ] {
        let ended = with(options);
        assert!(ended.code == Some(1) && ended.stderr.contains(part), "{}", ended.stderr);
    }
    let text = fs::read_to_string(&key).unwrap();
    user.write("alice.key", &text, 0o644);
    let ended = with(&["--certificate", &own, "--key", &key]);
    assert!(ended.code == Some(1) && ended.stderr.contains(&format!("chmod 600 {key}")), "{}", ended.stderr);
}

/// Writes a certificate and its key into the user's home. Returns the certificate, which is its own authority.
fn authority_of(user: &User) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(vec!["alice".to_owned()]).unwrap();
    user.write("alice.pem", &cert.pem(), 0o600);
    user.write("alice.key", &signing_key.serialize_pem(), 0o600);
    cert.der().clone()
}

/// Starts a gateway behind TLS. Returns its address, and its certificate in PEM.
fn tls_gateway() -> (SocketAddr, String) {
    tls_gateway_for(None)
}

/// Starts a gateway behind TLS, which asks for a certificate of the authority. Returns its address, and its certificate in PEM.
fn tls_gateway_for(authority: Option<&CertificateDer<'static>>) -> (SocketAddr, String) {
    let certificate = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(certificate.signing_key.serialize_der().into());
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let builder = match authority {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
        None => builder.with_no_client_auth(),
    };
    let tls = builder.with_single_cert(vec![certificate.cert.der().clone()], key).unwrap();
    let tls = Arc::new(tls);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&tls)).unwrap(), stream);
            let body = submission(ID, "RUNNING");
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.to_string().len()
            );
            // A client that trusts nothing here hangs up.
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    (address, certificate.cert.pem())
}
