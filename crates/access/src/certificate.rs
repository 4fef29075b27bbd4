//! What a client certificate says of its owner. The TLS layer has verified its chain before.

#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use thiserror::Error;
use x509_parser::{
    certificate::X509Certificate,
    extensions::GeneralName,
    prelude::FromDer,
    x509::{AttributeTypeAndValue, X509Name},
};

use crate::{
    authentication::{CertificateSubject, Proxy},
    principal::{InvalidName, Principal, Provider},
};

/// The names in a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    common_names: Vec<String>,
    organizations: Vec<String>,
    dns_names: Vec<String>,
    uris: Vec<String>,
    expires: DateTime<Utc>,
}

impl ClientCertificate {
    /// Reads a certificate in DER (RFC 5280), which the TLS layer has verified.
    ///
    /// # Errors
    /// The bytes are no certificate, or a name in it can't be read.
    pub fn parse(der: &[u8]) -> Result<Self, CertificateError> {
        let (rest, certificate) = X509Certificate::from_der(der).map_err(|_| CertificateError::Malformed)?;
        if !rest.is_empty() {
            return Err(CertificateError::Malformed);
        }
        let (mut dns_names, mut uris) = (Vec::new(), Vec::new());
        let alternative = certificate.subject_alternative_name().map_err(|_| CertificateError::Malformed)?;
        for name in alternative.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::DNSName(name) => dns_names.push((*name).to_owned()),
                GeneralName::URI(uri) => uris.push((*uri).to_owned()),
                GeneralName::Invalid(..) => return Err(CertificateError::Malformed),
                _ => {}
            }
        }
        let expires = certificate.validity().not_after.timestamp();
        Ok(Self {
            common_names: texts(certificate.subject(), X509Name::iter_common_name)?,
            organizations: texts(certificate.subject(), X509Name::iter_organization)?,
            dns_names,
            uris,
            expires: DateTime::from_timestamp(expires, 0).ok_or(CertificateError::Malformed)?,
        })
    }

    /// Returns the principal of the certificate: `certificate:<common name>` with the organizations as groups, as in
    /// Kubernetes, or `certificate:<URI>`. It ends with the certificate.
    ///
    /// # Errors
    /// The certificate has no such name or several, or the name can't be that of a subject.
    pub fn principal(&self, subject: CertificateSubject) -> Result<Principal, CertificateError> {
        let names = match subject {
            CertificateSubject::CommonName => &self.common_names,
            CertificateSubject::Uri => &self.uris,
        };
        // Of several, the authority may have verified another one than this gateway would take.
        let [name] = names.as_slice() else { return Err(CertificateError::Subject(names.len())) };
        let principal = Principal::new(Provider::Certificate, name).map_err(CertificateError::Name)?;
        let groups = match subject {
            CertificateSubject::CommonName => self.organizations.as_slice(),
            CertificateSubject::Uri => &[],
        };
        Ok(principal.with_groups(groups.iter().map(String::as_str)).with_expiry(Some(self.expires)))
    }

    /// Returns whether the certificate is one of a trusted proxy: by its only common name, or by a DNS name. The case of letters
    /// doesn't count in DNS names.
    pub fn is_of(&self, proxy: &Proxy) -> bool {
        proxy.certificates.iter().any(|trusted| {
            self.common_names.as_slice() == [trusted.as_str()]
                || self.dns_names.iter().any(|name| name.eq_ignore_ascii_case(trusted))
        })
    }
}

impl Proxy {
    /// Returns the principal that a trusted proxy's headers name: `proxy:<user>`, with the groups of a list separated by commas.
    /// The connection must have a certificate for which [`ClientCertificate::is_of`] returns true.
    ///
    /// # Errors
    /// The user can't be the name of a subject.
    pub fn principal(&self, user: &str, groups: Option<&str>) -> Result<Principal, InvalidName> {
        let principal = Principal::new(Provider::Proxy, user)?;
        let groups = groups.filter(|_| self.groups_header.is_some()).unwrap_or_default();
        Ok(principal.with_groups(groups.split(',').map(str::trim)))
    }
}

/// Returns the values of one attribute of a name.
fn texts<'a, I>(name: &'a X509Name<'a>, attribute: fn(&'a X509Name<'a>) -> I) -> Result<Vec<String>, CertificateError>
where
    I: Iterator<Item = &'a AttributeTypeAndValue<'a>>,
{
    attribute(name).map(|value| value.as_str().map(str::to_owned).map_err(|_| CertificateError::Malformed)).collect()
}

/// Why a certificate names no principal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CertificateError {
    #[error("the client certificate can't be read")]
    Malformed,
    #[error("the client certificate has {0} names that could be the subject: it needs one")]
    Subject(usize),
    #[error("the name in the client certificate is invalid")]
    Name(#[source] InvalidName),
}
