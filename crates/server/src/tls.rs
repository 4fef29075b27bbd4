//! TLS of the listener. Its files are read again when they change, so that a renewed certificate needs no restart.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, InconsistentKeys, RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{self, PemObject},
        },
        server::{VerifierBuilderError, WebPkiClientVerifier},
    },
    server::TlsStream,
};
use tokio_util::sync::CancellationToken;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{connection::Connection, request_timer::HEADERS};
use sparkgate_common::watched::{Content, WATCH_PERIOD, Watched, time_to_look};
use sparkgate_metrics::metrics;

/// The name of the files in metrics.
const METRIC: &str = "tls";

/// The protocols, the preferred one first (RFC 7301).
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";
/// The answer to a request without TLS. Spark's own REST client sends no others.
const PLAIN: &str = "This gateway is served over TLS: use https.\n";

/// The files of the listener's certificate, in PEM format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those of the authorities between it and the root.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The certificates of the authorities that issue client certificates. A client may have one, and need not. `None` asks for
    /// none.
    pub client_ca: Option<PathBuf>,
}

/// A file of the listener's certificate can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{option} {}: the file can't be read", file.display())]
    Read { option: &'static str, file: PathBuf, source: io::Error },
    #[error("{option} {}: expected {expected} in PEM format", file.display())]
    Pem { option: &'static str, file: PathBuf, expected: &'static str, source: pem::Error },
    #[error("--tls-key {} doesn't belong to the first certificate of --tls-certificate {}", key.display(), certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("--tls-certificate {} and --tls-key {} can't be used", certificate.display(), key.display())]
    Certificate { certificate: PathBuf, key: PathBuf, source: rustls::Error },
    #[error("--tls-client-ca {}: a certificate can't be used", file.display())]
    ClientCa { file: PathBuf, source: rustls::Error },
    #[error("--tls-client-ca {}: no client certificate can be checked with it", file.display())]
    Verifier { file: PathBuf, source: VerifierBuilderError },
}

/// The listener's certificate. Cheap to clone.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    files: TlsFiles,
    config: Watched<ServerConfig>,
}

/// A connection after its handshake.
pub(super) struct Secured {
    pub(super) stream: TlsStream<Connection>,
    pub(super) is_http2: bool,
    /// The client's.
    pub(super) certificate: Option<CertificateDer<'static>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] names the option and its file.
    pub async fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let contents = Contents::read(&files).await?;
        let config = Watched::new(METRIC, contents.config(&files)?, &contents);
        contents.report();
        Ok(Self(Arc::new(Inner { files, config })))
    }

    /// Reads the files repeatedly until `stop`. cert-manager and the kubelet replace a certificate weeks before the old one expires.
    pub async fn run(self, stop: CancellationToken) {
        while time_to_look(&stop).await {
            self.reload().await;
        }
    }

    /// Reads the files, and uses them for new connections if they have changed and can be used. Sessions of the old certificate
    /// aren't resumed.
    pub(super) async fn reload(&self) {
        let files = &self.0.files;
        let reloaded = self.0.config.take(Contents::read(files).await, |contents| {
            let config = contents.config(files)?;
            contents.report();
            Ok(config)
        });
        match reloaded {
            None => {}
            Some(Ok(_)) => tracing::info!(certificate = %files.certificate.display(), "TLS certificate reloaded"),
            Some(Err(trouble)) => tracing::error!(
                "the TLS files have changed and can't be used: new connections get the certificate from before. \
                 Repair them, they are read again every {WATCH_PERIOD:?}: {trouble}"
            ),
        }
    }

    /// Does the handshake of a connection, within a time limit.
    ///
    /// # Errors
    /// The handshake failed, or wasn't finished in time.
    pub(super) async fn accept(&self, connection: Connection) -> io::Result<Secured> {
        timeout(HEADERS, self.handshake(connection)).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn handshake(&self, connection: Connection) -> io::Result<Secured> {
        // A record of TLS begins with its type, which is no letter (RFC 8446, section 5.1).
        if connection.peek().await?.is_some_and(|byte| byte.is_ascii_uppercase()) {
            return refuse_plain(connection).await;
        }
        let config = self.0.config.current();
        let mut stream = TlsAcceptor::from(config).accept(connection).await?;
        let (connection, session) = stream.get_mut();
        let is_http2 = session.alpn_protocol() == Some(HTTP2);
        let certificate = session.peer_certificates().and_then(<[_]>::first).map(|own| own.clone().into_owned());
        connection.handshake_ended(is_http2);
        Ok(Secured { stream, is_http2, certificate })
    }
}

/// Answers a request that was sent without TLS.
///
/// # Errors
/// Always: there is no secured connection.
async fn refuse_plain(mut connection: Connection) -> io::Result<Secured> {
    // A socket that is closed with unread bytes takes back what was written to it.
    let _ = connection.read(&mut [0; 4096]).await?;
    let length = PLAIN.len();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{PLAIN}"
    );
    connection.write_all(answer.as_bytes()).await?;
    connection.shutdown().await?;
    Err(io::Error::new(io::ErrorKind::InvalidData, "the request was sent without TLS"))
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.0.files).finish()
    }
}

/// What is in the files.
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    async fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let client_ca = match &files.client_ca {
            None => None,
            Some(file) => Some(read("--tls-client-ca", file).await?),
        };
        let certificate = read("--tls-certificate", &files.certificate).await?;
        Ok(Self { certificate, key: read("--tls-key", &files.key).await?, client_ca })
    }

    /// Sets the metric of a certificate that can be used.
    fn report(&self) {
        let first = CertificateDer::pem_slice_iter(&self.certificate).next().and_then(Result::ok);
        if let Some(first) = first
            && let Ok((_, certificate)) = X509Certificate::from_der(&first)
        {
            metrics().certificate_expiry.set(certificate.validity().not_after.timestamp() as f64);
        }
    }

    /// Returns the configuration for connections: TLS 1.2 and 1.3.
    fn config(&self, files: &TlsFiles) -> Result<ServerConfig, TlsError> {
        let TlsFiles { certificate, key, .. } = files;
        let unusable = |source| match source {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::Mismatch { certificate: certificate.clone(), key: key.clone() }
            }
            source => TlsError::Certificate { certificate: certificate.clone(), key: key.clone(), source },
        };
        let chain = certificates("--tls-certificate", certificate, &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|source| TlsError::Pem {
            option: "--tls-key",
            file: key.clone(),
            expected: "a private key without a password",
            source,
        })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
        let builder = match (&files.client_ca, &self.client_ca) {
            (Some(file), Some(text)) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates("--tls-client-ca", file, text)? {
                    roots.add(authority).map_err(|source| TlsError::ClientCa { file: file.clone(), source })?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier.allow_unauthenticated().build();
                let verifier = verifier.map_err(|source| TlsError::Verifier { file: file.clone(), source })?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(config)
    }
}

impl Content for Contents {
    fn digest(&self) -> [u8; 32] {
        let files = [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()];
        let digests = files.into_iter().flatten().map(Sha256::digest);
        digests.fold(Sha256::new(), |all, digest| all.chain_update(digest)).finalize().into()
    }
}

async fn read(option: &'static str, file: &Path) -> Result<Vec<u8>, TlsError> {
    tokio::fs::read(file).await.map_err(|source| TlsError::Read { option, file: file.to_owned(), source })
}

/// Parses at least one certificate.
fn certificates(option: &'static str, file: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let parsed = parsed.and_then(|all| if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) });
    parsed.map_err(|source| TlsError::Pem { option, file: file.to_owned(), expected: "a certificate", source })
}
