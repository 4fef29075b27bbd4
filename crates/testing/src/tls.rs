//! TLS of servers in tests.

use std::sync::Arc;

use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};

/// A certificate for 127.0.0.1 that is its own authority.
#[derive(Debug)]
pub struct SelfSigned {
    /// The configuration of a server that has the certificate.
    pub config: Arc<ServerConfig>,
    /// In PEM format, as the key.
    pub certificate: String,
    pub key: String,
}

impl SelfSigned {
    /// Creates a certificate and its key.
    ///
    /// # Panics
    /// The certificate can't be created.
    pub fn create() -> Self {
        let created = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(created.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has the ciphers of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![created.cert.der().clone()], key)
            .expect("the key of the certificate");
        Self { config: Arc::new(config), certificate: created.cert.pem(), key: created.signing_key.serialize_pem() }
    }
}
