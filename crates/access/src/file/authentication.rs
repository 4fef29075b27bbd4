//! Checks the section `authentication`.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use serde_json::Value;
use serde_saphyr::Spanned;
use sparkgate_submission::parse_duration;

use super::{
    document::{
        AuthenticationDocument, ConsoleDocument, Entries, OidcDocument, OneOrMore, ProxyDocument,
        SparkListenerDocument, Text,
    },
    fault::Faults,
};
use crate::{
    authentication::{
        Authentication, CertificateSubject, Certificates, ClaimPath, ConsoleClient, Kubernetes, OidcIssuer, Proxy,
        SESSION_IDLE, SESSION_LIFETIME, SparkJws, SparkListener,
    },
    jwt::Algorithm,
    principal::{Principal, Provider},
};

/// The leeway of an issuer that sets none.
const DEFAULT_LEEWAY: Duration = Duration::from_secs(60);

/// The greatest leeway: a token would be valid for that long after its end.
const LONGEST_LEEWAY: Duration = Duration::from_secs(600);

/// The greatest lifetime of a session of a browser.
const LONGEST_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// Checks the whole section.
pub(super) fn check(document: AuthenticationDocument, faults: &mut Faults) -> Authentication {
    let oidc = issuers(document.oidc.unwrap_or_default(), faults);
    let kubernetes = document
        .kubernetes
        .map(|section| Kubernetes { audiences: audiences(section.audience, "authentication.kubernetes", faults) });
    let has_certificates = document.certificates.is_some();
    let certificates = document.certificates.map(|section| {
        let subject = section.subject.map_or(CertificateSubject::CommonName, |text| match text.value.as_str() {
            "commonName" => CertificateSubject::CommonName,
            "uri" => CertificateSubject::Uri,
            _ => {
                faults.add(&text.referenced, "authentication.certificates.subject", "it is commonName or uri");
                CertificateSubject::CommonName
            }
        });
        Certificates { ca_file: section.ca_file, subject }
    });
    let proxy = document.proxy.map(|section| proxy(section, has_certificates, faults));
    let spark_jws = document.spark_jws.map(|section| SparkJws {
        secret_file: section.secret_file,
        require_expiration: section.require_expiration.unwrap_or(false),
    });
    let spark_listener = document.spark_listener.and_then(|section| spark_listener(section, faults));
    let api_keys = document.api_keys.and_then(|section| section.enabled).unwrap_or(true);
    let authentication = Authentication { oidc, kubernetes, api_keys, certificates, proxy, spark_jws, spark_listener };
    if !api_keys && accepts_nothing(&authentication) {
        faults.add_without_place("authentication", "no caller could be authenticated: configure a provider");
    }
    authentication
}

/// Returns whether no provider but API keys is configured.
fn accepts_nothing(authentication: &Authentication) -> bool {
    authentication.oidc.is_empty()
        && authentication.kubernetes.is_none()
        && authentication.certificates.is_none()
        && authentication.spark_jws.is_none()
        && authentication.spark_listener.is_none()
}

fn issuers(documents: Vec<OidcDocument>, faults: &mut Faults) -> Vec<OidcIssuer> {
    let mut issuers: Vec<OidcIssuer> = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let path = format!("authentication.oidc[{index}]");
        let place = document.issuer.referenced;
        let named_at = document.name.as_ref().map_or(place, |name| name.referenced);
        let url_at = document.console.as_ref().map(|console| console.external_url.referenced);
        let issuer = issuer(document, &path, faults);
        let url = |issuer: &OidcIssuer| issuer.console.as_ref().map(|console| console.external_url.clone());
        if let (Some(place), Some(this), Some(first)) = (url_at, url(&issuer), issuers.iter().find_map(url))
            && this != first
        {
            let reason = format!("another issuer has {first}: a gateway has one URL in browsers");
            faults.add(&place, format!("{path}.console.externalUrl"), reason);
        }
        if issuers.iter().any(|other| other.name == issuer.name) {
            let reason =
                format!("another issuer has the name `{}`: subjects of one would be those of the other", issuer.name);
            faults.add(&named_at, format!("{path}.name"), reason);
        }
        if issuers.iter().any(|other| other.issuer == issuer.issuer) {
            faults.add(&place, format!("{path}.issuer"), "it is listed twice: an issuer may have several audiences");
        }
        issuers.push(issuer);
    }
    issuers
}

fn issuer(document: OidcDocument, path: &str, faults: &mut Faults) -> OidcIssuer {
    let name = document.name.map_or_else(
        || "oidc".to_owned(),
        |name| {
            if let Err(error) = Provider::check_oidc_name(&name.value) {
                faults.add(&name.referenced, format!("{path}.name"), error);
            }
            name.value
        },
    );
    if let Err(reason) = check_url(&document.issuer.value) {
        faults.add(&document.issuer.referenced, format!("{path}.issuer"), reason);
    }
    if let Some(uri) = &document.jwks_uri
        && let Err(reason) = check_url(&uri.value)
    {
        faults.add(&uri.referenced, format!("{path}.jwksUri"), reason);
    }
    let mut claim = |name: &str, text: Text| {
        let claim = ClaimPath::new(&text.value);
        if claim.is_none() {
            faults.add(&text.referenced, format!("{path}.{name}"), "a claim is a name, or names separated by dots");
        }
        claim
    };
    let subject_claim = document.subject_claim.and_then(|text| claim("subjectClaim", text));
    let groups_claim = document.groups_claim.and_then(|text| claim("groupsClaim", text));
    OidcIssuer {
        name,
        issuer: document.issuer.value,
        audiences: audiences(document.audience, path, faults),
        algorithms: algorithms(document.algorithms, &format!("{path}.algorithms"), faults),
        subject_claim: subject_claim.unwrap_or_else(ClaimPath::sub),
        groups_claim,
        required_claims: required_claims(document.required_claims, &format!("{path}.requiredClaims"), faults),
        leeway: leeway(document.leeway, &format!("{path}.leeway"), faults),
        client_id: document.client_id,
        ca_file: document.ca_file,
        jwks_uri: document.jwks_uri.map(|uri| uri.value),
        console: document.console.map(|section| console(section, &format!("{path}.console"), faults)),
    }
}

fn console(document: ConsoleDocument, path: &str, faults: &mut Faults) -> ConsoleClient {
    if document.client_id.value.is_empty() {
        faults.add(&document.client_id.referenced, format!("{path}.clientId"), "it is empty");
    }
    let external_url = document.external_url.value.trim_end_matches('/').to_owned();
    let place = &document.external_url.referenced;
    if check_url(&external_url).is_err() || external_url.contains(['"', '\\', '<', '>']) {
        let reason = "it is the gateway's URL in browsers, like https://sparkgate.example.org; http only on this host";
        faults.add(place, format!("{path}.externalUrl"), reason);
    }
    let mut scopes = vec!["openid".to_owned()];
    for (index, scope) in document.scopes.unwrap_or_default().into_iter().enumerate() {
        // RFC 6749, section 3.3.
        let is_token = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
        if scope.value.is_empty() || !scope.value.chars().all(is_token) {
            faults.add(&scope.referenced, format!("{path}.scopes[{index}]"), "a scope is one word");
        }
        if !scopes.contains(&scope.value) {
            scopes.push(scope.value);
        }
    }
    let mut time = |name: &str, text: Option<Text>, default: Duration| {
        let Some(text) = text else { return default };
        let time = parse_duration(&text.value).filter(|time| !time.is_zero() && *time <= LONGEST_LIFETIME);
        time.unwrap_or_else(|| {
            faults.add(&text.referenced, format!("{path}.{name}"), "it is a time up to 30d, like `2h`");
            default
        })
    };
    let (idle, lifetime) =
        (time("idle", document.idle, SESSION_IDLE), time("lifetime", document.lifetime, SESSION_LIFETIME));
    ConsoleClient {
        client_id: document.client_id.value,
        client_secret_file: document.client_secret_file,
        external_url,
        scopes,
        idle,
        lifetime,
    }
}

fn audiences(audience: Spanned<OneOrMore>, path: &str, faults: &mut Faults) -> Vec<String> {
    let audiences = audience.value.into_vec();
    if audiences.is_empty() || audiences.iter().any(String::is_empty) {
        let reason = "a token must be meant for this gateway: name its audience";
        faults.add(&audience.referenced, format!("{path}.audience"), reason);
    }
    audiences
}

fn algorithms(texts: Option<Spanned<Vec<Text>>>, path: &str, faults: &mut Faults) -> Vec<Algorithm> {
    let Some(texts) = texts else { return vec![Algorithm::Rs256, Algorithm::Es256] };
    if texts.value.is_empty() {
        faults.add(&texts.referenced, path, "without an algorithm every token is refused");
    }
    let mut algorithms = Vec::new();
    for (index, text) in texts.value.into_iter().enumerate() {
        match text.value.parse() {
            Ok(algorithm) => algorithms.push(algorithm),
            Err(error) => faults.add(&text.referenced, format!("{path}[{index}]"), error),
        }
    }
    algorithms
}

fn required_claims(claims: Option<Entries<Value>>, path: &str, faults: &mut Faults) -> BTreeMap<ClaimPath, Value> {
    let mut required = BTreeMap::new();
    for (name, value) in claims.unwrap_or(Entries(Vec::new())).0 {
        let at = format!("{path}[{:?}]", name.value);
        match ClaimPath::new(&name.value) {
            None => faults.add(&name.referenced, at, "a claim is a name, or names separated by dots"),
            Some(_) if value.is_null() || value.is_array() || value.is_object() => {
                faults.add(&name.referenced, at, "the value is a text, a number, true or false");
            }
            Some(claim) => drop(required.insert(claim, value)),
        }
    }
    required
}

fn leeway(text: Option<Text>, path: &str, faults: &mut Faults) -> Duration {
    let Some(text) = text else { return DEFAULT_LEEWAY };
    parse_duration(&text.value).filter(|leeway| *leeway <= LONGEST_LEEWAY).unwrap_or_else(|| {
        faults.add(&text.referenced, path, "a leeway is a time up to 10min, like `60s`");
        DEFAULT_LEEWAY
    })
}

/// Checks a URL of an issuer: HTTPS (`OpenID` Connect Discovery 1.0, section 2), or HTTP on this host, for tests.
fn check_url(url: &str) -> Result<(), &'static str> {
    if url.len() > 2048 || url.chars().any(|c| c.is_whitespace() || c.is_control()) || url.contains(['?', '#', '@']) {
        return Err("the URL of an issuer has no spaces, query, fragment or user");
    }
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    match scheme {
        _ if name.is_empty() => Err("it is a URL like https://id.example.org/realms/data"),
        "https" => Ok(()),
        "http" if matches!(name, "localhost" | "127.0.0.1" | "[::1]") => Ok(()),
        "http" => Err("keys that come over plain HTTP prove nothing: use https"),
        _ => Err("it is a URL like https://id.example.org/realms/data"),
    }
}

fn proxy(document: ProxyDocument, has_certificates: bool, faults: &mut Faults) -> Proxy {
    let path = "authentication.proxy";
    if !has_certificates {
        let reason = "the proxy's certificate can't be verified: set authentication.certificates.caFile";
        faults.add(&document.certificates.referenced, format!("{path}.certificates"), reason);
    }
    if document.certificates.value.is_empty() {
        let reason = "without the name of a certificate every client could set the header";
        faults.add(&document.certificates.referenced, format!("{path}.certificates"), reason);
    }
    let mut certificates = Vec::new();
    for (index, name) in document.certificates.value.into_iter().enumerate() {
        if name.value.is_empty() || name.value.contains('*') {
            let reason = "a certificate is named exactly, by its common name or a DNS name";
            faults.add(&name.referenced, format!("{path}.certificates[{index}]"), reason);
        }
        certificates.push(name.value);
    }
    let mut header = |name: &str, text: Text| {
        if !is_header(&text.value) {
            faults.add(&text.referenced, format!("{path}.{name}"), "it isn't the name of a header");
        }
        text.value
    };
    Proxy {
        user_header: header("userHeader", document.user_header),
        groups_header: document.groups_header.map(|text| header("groupsHeader", text)),
        certificates,
    }
}

/// Returns whether the text is a token of RFC 9110, section 5.6.2, as the names of headers are.
fn is_header(text: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(is_token)
}

fn spark_listener(document: SparkListenerDocument, faults: &mut Faults) -> Option<SparkListener> {
    let path = "authentication.sparkListener";
    let listen = document.listen.value.parse::<SocketAddr>();
    if listen.is_err() {
        let reason = "it is an address and a port, like 0.0.0.0:6068";
        faults.add(&document.listen.referenced, format!("{path}.listen"), reason);
    }
    let name = document.subject.as_ref().map_or("spark-submit", |text| &text.value);
    let principal = Principal::new(Provider::SparkListener, name);
    if let (Err(error), Some(text)) = (&principal, &document.subject) {
        faults.add(&text.referenced, format!("{path}.subject"), error);
    }
    Some(SparkListener { listen: listen.ok()?, principal: principal.ok()? })
}
