//! Certificates that rcgen makes.

use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, KeyPair, SanType, date_time_ymd};

use super::*;

/// Creates a certificate with these common names, organizations, DNS names and URIs.
fn certificate(common_name: Option<&str>, organization: Option<&str>, dns_names: &[&str], uris: &[&str]) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, name) in [(DnType::CommonName, common_name), (DnType::OrganizationName, organization)] {
        if let Some(name) = name {
            params.distinguished_name.push(kind, name);
        }
    }
    let dns_names = dns_names.iter().map(|name| SanType::DnsName((*name).try_into().unwrap()));
    let uris = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap()));
    params.subject_alt_names = dns_names.chain(uris).collect();
    params.not_after = date_time_ymd(2040, 1, 1);
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

fn proxy(certificates: &[&str], groups: bool) -> Proxy {
    Proxy {
        user_header: "X-Forwarded-User".to_owned(),
        groups_header: groups.then(|| "X-Forwarded-Groups".to_owned()),
        certificates: certificates.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn the_subject_is_the_common_name_or_the_uri() {
    let der =
        certificate(Some("alice"), Some("data-eng"), &["a.example.org"], &["spiffe://example.org/ns/ci/sa/airflow"]);
    let certificate = ClientCertificate::parse(&der).unwrap();
    let alice = certificate.principal(CertificateSubject::CommonName).unwrap();
    assert_eq!(alice.subject(), "certificate:alice");
    assert_eq!(alice.groups().iter().collect::<Vec<_>>(), ["certificate:data-eng"]);
    assert_eq!(alice.expires().unwrap().to_rfc3339(), "2040-01-01T00:00:00+00:00");
    let airflow = certificate.principal(CertificateSubject::Uri).unwrap();
    assert_eq!(airflow.subject(), "certificate:spiffe://example.org/ns/ci/sa/airflow");
    assert!(airflow.groups().is_empty(), "organizations belong to the common name");
}

#[test]
fn a_certificate_without_one_subject_is_refused() {
    let parse = |der: Vec<u8>| ClientCertificate::parse(&der).unwrap();
    let none = parse(certificate(None, None, &["a.example.org"], &[]));
    assert_eq!(none.principal(CertificateSubject::CommonName), Err(CertificateError::Subject(0)));
    let two = parse(certificate(Some("alice"), None, &[], &["spiffe://a", "spiffe://b"]));
    assert_eq!(two.principal(CertificateSubject::Uri), Err(CertificateError::Subject(2)));
    let nul = parse(certificate(Some("alice\0.evil"), None, &[], &[]));
    assert_eq!(nul.principal(CertificateSubject::CommonName), Err(CertificateError::Name(InvalidName::Characters)),);
}

#[test]
fn a_proxy_is_known_by_the_names_of_its_certificate() {
    let trusted = proxy(&["proxy.example.org"], true);
    let is_of = |der: Vec<u8>| ClientCertificate::parse(&der).unwrap().is_of(&trusted);
    assert!(is_of(certificate(Some("proxy.example.org"), None, &[], &[])));
    assert!(is_of(certificate(None, None, &["other", "PROXY.example.org"], &[])));
    for der in [
        certificate(Some("proxy.example.org.evil"), Some("proxy.example.org"), &["*.example.org"], &[]),
        certificate(None, None, &[], &["proxy.example.org"]),
        certificate(None, None, &[], &[]),
    ] {
        assert!(!is_of(der));
    }
    assert!(!ClientCertificate::parse(&certificate(None, None, &[], &[])).unwrap().is_of(&proxy(&[], true)));
}

#[test]
fn the_headers_of_a_proxy_name_user_and_groups() {
    let alice = proxy(&[], true).principal("alice", Some("data-eng, platform,,")).unwrap();
    assert_eq!(alice.subject(), "proxy:alice");
    assert_eq!(alice.groups().iter().collect::<Vec<_>>(), ["proxy:data-eng", "proxy:platform"]);
    let without = proxy(&[], false).principal("alice", Some("platform")).unwrap();
    assert!(without.groups().is_empty(), "the header of groups isn't configured");
    assert_eq!(proxy(&[], true).principal("", None), Err(InvalidName::Empty));
}

#[test]
fn bytes_that_are_no_certificate_are_refused() {
    let mut der = certificate(Some("alice"), None, &[], &[]);
    der.push(0);
    assert_eq!(ClientCertificate::parse(&der), Err(CertificateError::Malformed));
    assert_eq!(ClientCertificate::parse(&der[..der.len() / 2]), Err(CertificateError::Malformed));
    assert_eq!(ClientCertificate::parse(b""), Err(CertificateError::Malformed));
}

proptest! {
    #[test]
    fn no_bytes_make_parsing_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        use std::sync::LazyLock;
        static DER: LazyLock<Vec<u8>> = LazyLock::new(|| certificate(Some("alice"), Some("x"), &["a"], &["b:c"]));
        let _ = ClientCertificate::parse(&bytes);
        let mut der = DER.clone();
        for (at, byte) in changes {
            *at.get_mut(&mut der) = byte;
        }
        if let Ok(certificate) = ClientCertificate::parse(&der) {
            let _ = certificate.principal(CertificateSubject::CommonName);
        }
    }
}
