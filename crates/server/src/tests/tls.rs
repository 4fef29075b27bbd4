//! Connections with TLS.

use std::fs;

use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    },
};

use super::*;

/// The authority of a test, and the files of the listener.
struct Place {
    authority: Authority,
    folder: TempDir,
}

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate and its key.
struct Issued {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issue(authority: &Authority, name: &str) -> Issued {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    Issued { certificate: params.signed_by(&key, authority).unwrap(), key }
}

impl Place {
    /// Writes a certificate for `localhost`.
    fn new() -> Self {
        let place = Self { authority: authority(), folder: tempfile::tempdir().unwrap() };
        place.renew();
        fs::write(place.folder.path().join("ca.pem"), place.authority.pem()).unwrap();
        place
    }

    /// Writes another certificate for `localhost`, and returns it.
    fn renew(&self) -> CertificateDer<'static> {
        let Issued { certificate, key } = issue(&self.authority, "localhost");
        let files = self.files();
        fs::write(files.certificate, certificate.pem()).unwrap();
        fs::write(files.key, key.serialize_pem()).unwrap();
        certificate.der().clone()
    }

    fn files(&self) -> TlsFiles {
        let file = |name| self.folder.path().join(name);
        TlsFiles { certificate: file("server.pem"), key: file("key.pem"), client_ca: Some(file("ca.pem")) }
    }

    async fn start(&self) -> (SocketAddr, Tls, DropGuard) {
        let tls = Tls::load(self.files()).await.unwrap();
        let settings = ServerSettings { tls: Some(tls.clone()), ..ServerSettings::default() };
        let (address, server) = start_with(settings).await;
        (address, tls, server)
    }

    async fn connect(&self, address: SocketAddr) -> TlsStream<TcpStream> {
        self.connect_as(address, None, &[b"http/1.1"]).await.unwrap()
    }

    /// Connects with a client certificate, and these protocols in ALPN.
    async fn connect_as(
        &self,
        address: SocketAddr,
        client: Option<Issued>,
        protocols: &[&[u8]],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match client {
            None => config.with_no_client_auth(),
            Some(Issued { certificate, key }) => {
                let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
                config.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
    }
}

fn certificate_of(client: &TlsStream<TcpStream>) -> CertificateDer<'_> {
    client.get_ref().1.peer_certificates().unwrap()[0].clone()
}

fn request() -> Request<Body> {
    Request::get("/").header("host", "localhost").body(Body::empty()).unwrap()
}

#[tokio::test]
async fn http_1_and_http_2_are_negotiated() {
    let place = Place::new();
    let (address, _, _server) = place.start().await;
    for protocols in [&[b"h2".as_slice(), b"http/1.1"][..], &[b"http/1.1"], &[]] {
        let client = place.connect_as(address, None, protocols).await.unwrap();
        let expected = protocols.first().copied();
        assert_eq!(client.get_ref().1.alpn_protocol(), expected);
        let stream = TokioIo::new(client);
        let (response, version) = if expected == Some(b"h2") {
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            tokio::spawn(connection);
            (sender.send_request(request()).await.unwrap(), Version::HTTP_2)
        } else {
            let (mut sender, connection) = http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            (sender.send_request(request()).await.unwrap(), Version::HTTP_11)
        };
        assert_eq!((response.status().as_u16(), response.version()), (200, version));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "done");
    }
}

#[tokio::test]
async fn a_request_without_tls_is_answered_with_a_hint() {
    let place = Place::new();
    let (address, _, _server) = place.start().await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(GET).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("use https"), "{answer}");
}

#[tokio::test]
async fn a_client_that_never_finishes_the_handshake_is_closed_and_delays_no_other() {
    let place = Place::new();
    let (address, _, _server) = place.start().await;
    let began = Instant::now();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
    let mut client = place.connect(address).await;
    client.write_all(GET).await.unwrap();
    answered(&mut client).await;
    tokio::time::pause();
    assert!(is_closed(&mut silent).await && is_closed(&mut slow).await);
    let after = began.elapsed();
    assert!(after >= request_timer::HEADERS && after <= Duration::from_secs(60), "{after:?}");
}

#[tokio::test]
async fn a_request_may_follow_its_handshake_after_a_while_but_not_byte_by_byte() {
    let place = Place::new();
    let (address, _, _server) = place.start().await;
    let mut client = place.connect(address).await;
    tokio::time::pause();
    sleep(Duration::from_secs(100)).await;
    client.write_all(GET).await.unwrap();
    answered(&mut client).await;
    let began = Instant::now();
    let (mut reads, mut writes) = tokio::io::split(client);
    let slow = async {
        while writes.write_all(b"G").await.is_ok() && writes.flush().await.is_ok() {
            sleep(Duration::from_secs(4)).await;
        }
    };
    tokio::select! {
        () = slow => {}
        closed = is_closed(&mut reads) => assert!(closed),
    }
    assert!(began.elapsed() <= Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_handler_sees_the_client_certificate_and_a_client_needs_none() {
    let place = Place::new();
    let (address, _, _server) = place.start().await;
    let issued = issue(&place.authority, "alice");
    let length = issued.certificate.der().len();
    for (client, length) in [(Some(issued), length), (None, 0)] {
        let mut client = place.connect_as(address, client, &[]).await.unwrap();
        client.write_all(b"GET /peer HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let answer = answered(&mut client).await;
        assert!(answer.contains(&format!("127.0.0.1 None {length} done")), "{answer}");
    }
}

#[tokio::test]
async fn a_client_certificate_of_another_authority_is_refused() {
    let place = Place::new();
    let (address, _, _server) = place.start().await;
    for (issuer, served) in [(&place.authority, true), (&authority(), false)] {
        let client = place.connect_as(address, Some(issue(issuer, "alice")), &[]).await;
        // With TLS 1.3 a client learns of the refusal when it reads.
        let Ok(mut client) = client else { continue };
        let _ = client.write_all(GET).await;
        let mut answer = [0; 12];
        assert_eq!(client.read_exact(&mut answer).await.is_ok(), served);
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_for_new_connections_and_open_ones_go_on() {
    let place = Place::new();
    let (address, tls, _server) = place.start().await;
    let mut open = place.connect(address).await;
    open.write_all(GET).await.unwrap();
    answered(&mut open).await;
    let renewed = place.renew();
    assert_ne!(certificate_of(&open), renewed);
    tls.reload().await;
    assert_eq!(certificate_of(&place.connect(address).await), renewed);
    open.write_all(GET).await.unwrap();
    answered(&mut open).await;
}

#[tokio::test]
async fn files_that_became_unusable_keep_the_certificate_from_before() {
    let place = Place::new();
    let (address, tls, _server) = place.start().await;
    let before = certificate_of(&place.connect(address).await).into_owned();
    let files = place.files();
    let key = fs::read(&files.key).unwrap();
    for contents in ["no key", ""] {
        fs::write(&files.key, contents).unwrap();
        tls.reload().await;
        assert_eq!(certificate_of(&place.connect(address).await), before);
    }
    fs::remove_file(&files.key).unwrap();
    tls.reload().await;
    assert_eq!(certificate_of(&place.connect(address).await), before);
    fs::write(&files.key, key).unwrap();
    let renewed = place.renew();
    tls.reload().await;
    assert_eq!(certificate_of(&place.connect(address).await), renewed);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named() {
    let place = Place::new();
    let TlsFiles { certificate, key, client_ca } = place.files();
    let other = place.folder.path().join("other.pem");
    fs::write(&other, issue(&place.authority, "localhost").key.serialize_pem()).unwrap();
    let nowhere = place.folder.path().join("nowhere.pem");
    let files = |certificate: &std::path::Path, key: &std::path::Path, client_ca: Option<&std::path::Path>| TlsFiles {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        client_ca: client_ca.map(std::path::Path::to_owned),
    };
    let authority = client_ca.as_deref();
    for (files, expected) in [
        (files(&nowhere, &key, authority), "--tls-certificate"),
        (files(&key, &key, authority), "expected a certificate in PEM format"),
        (files(&certificate, &certificate, authority), "expected a private key"),
        (files(&certificate, &other, authority), "other.pem doesn't belong to the first certificate"),
        (files(&certificate, &key, Some(&key)), "--tls-client-ca"),
    ] {
        let error = Tls::load(files).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(Tls::load(files(&certificate, &key, None)).await.is_ok());
}
