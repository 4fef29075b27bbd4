//! The access file: what is read, and which faults are reported where.

use std::time::Duration;

use serde_json::json;

use super::*;

mod queues;

use crate::{
    authentication::CertificateSubject,
    jwt::Algorithm,
    principal::{Principal, Provider},
    tenant::{Caps, Namespaces, TenantLimits},
};

const EXAMPLE: &str = include_str!("../../../../deploy/access.example.yaml");

/// Returns the faults of a file, one line each.
fn faults(text: &str) -> Vec<String> {
    parse(text).unwrap_err().faults.iter().map(ToString::to_string).collect()
}

#[test]
fn the_example_is_valid() {
    let access = parse(EXAMPLE).unwrap();
    assert_eq!(access.tenants().map(|tenant| tenant.name.as_str()).collect::<Vec<_>>(), ["analytics", "reports"]);
    let analytics = access.tenant("analytics").unwrap();
    assert_eq!(analytics.namespaces, Namespaces::Listed(vec!["analytics".to_owned(), "analytics-batch".to_owned()]));
    assert_eq!(analytics.properties["spark.authenticate"], "true");
    assert_eq!(
        analytics.caps,
        Caps {
            start_timeout: Some(Duration::from_secs(3600)),
            run_timeout: Some(Duration::from_secs(24 * 3600)),
            kill_grace: Some(Duration::from_secs(600)),
            retries: Some(3),
        }
    );
    assert_eq!(
        analytics.limits,
        TenantLimits {
            queued: Some(1000),
            subscribers: Some(100),
            log_readers: Some(50),
            file_bytes: Some(1 << 30),
            record_bytes: Some(10 << 30),
        }
    );
    assert!(analytics.named_defaults.matches("nightly-7") && !analytics.named_defaults.matches("huge"));
    let authentication = access.authentication().unwrap();
    let corp = &authentication.oidc[0];
    assert_eq!(corp.algorithms, [Algorithm::Rs256]);
    assert_eq!(corp.leeway, Duration::from_secs(60));
    assert!(authentication.api_keys && authentication.proxy.is_some() && authentication.spark_jws.is_some());
    let listener = authentication.spark_listener.as_ref().unwrap();
    assert_eq!(listener.principal.subject(), "listener:spark-submit");
}

#[test]
fn the_first_file_of_the_documentation_is_valid() {
    let page = include_str!("../../../../docs/operate/access.md");
    let (_, block) = page.split_once("```yaml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let lines: Vec<_> = block.lines().map(|line| line.strip_prefix("   ").unwrap_or(line)).collect();
    assert_eq!(parse(&lines.join("\n")).map(|access| access.tenants().count()), Ok(1));
}

const SMALLEST: &str = "tenants: {a: {namespaces: [a]}}";

#[test]
fn what_is_absent_has_its_default() {
    let access = parse(SMALLEST).unwrap();
    let authentication = access.authentication().unwrap();
    assert!(authentication.api_keys, "API keys need no provider");
    assert_eq!(access.rates(), Some(&Rates::default()));
    let tenant = access.tenant("a").unwrap();
    assert!(tenant.files.matches("x") && tenant.spark_versions.is_empty() && tenant.policy.is_none());
    let text = "authentication: {oidc: [{issuer: 'https://a', audience: [b, c]}], certificates: {caFile: /ca}}\n";
    let access = parse(&format!("{text}{SMALLEST}")).unwrap();
    let authentication = access.authentication().unwrap();
    let issuer = &authentication.oidc[0];
    assert_eq!((issuer.name.as_str(), issuer.subject_claim.as_str()), ("oidc", "sub"));
    assert_eq!(issuer.algorithms, [Algorithm::Rs256, Algorithm::Es256]);
    assert_eq!(issuer.audiences, ["b", "c"]);
    assert!(issuer.groups_claim.is_none());
    assert_eq!(authentication.certificates.as_ref().unwrap().subject, CertificateSubject::CommonName);
}

#[test]
fn the_client_of_the_console_has_defaults_and_faults() {
    let file = |console: &str| {
        format!("authentication: {{oidc: [{{issuer: 'https://a', audience: b, console: {{{console}}}}}]}}\n{SMALLEST}")
    };
    let access = parse(&file("clientId: c, externalUrl: 'https://gate.example.org/spark/'")).unwrap();
    let console = access.authentication().unwrap().oidc[0].console.as_ref().unwrap();
    assert_eq!((console.external_url.as_str(), console.is_https()), ("https://gate.example.org/spark", true));
    assert_eq!(
        (console.scopes.join(" "), console.idle.as_secs(), console.lifetime.as_secs()),
        ("openid".to_owned(), 7200, 43200)
    );
    let access =
        parse(&file("clientId: c, externalUrl: 'http://localhost:6066', scopes: [profile, openid], idle: 15min"))
            .unwrap();
    let console = access.authentication().unwrap().oidc[0].console.as_ref().unwrap();
    assert_eq!(
        (console.scopes.join(" "), console.idle.as_secs(), console.is_https()),
        ("openid profile".to_owned(), 900, false)
    );
    for (console, part) in [
        ("clientId: '', externalUrl: 'https://a'", "console.clientId: it is empty"),
        (
            "clientId: c, externalUrl: 'http://gate.example.org'",
            "console.externalUrl: it is the gateway's URL in browsers",
        ),
        ("clientId: c, externalUrl: 'https://a/?x'", "console.externalUrl: it is"),
        ("clientId: c, externalUrl: 'https://a', scopes: ['a b']", "console.scopes[0]: a scope is one word"),
        ("clientId: c, externalUrl: 'https://a', lifetime: 0s", "console.lifetime: it is a time up to 30d"),
        ("clientId: c, externalUrl: 'https://a', idle: 31d", "console.idle: it is a time up to 30d"),
    ] {
        let found = faults(&file(console));
        assert!(found.len() == 1 && found[0].contains(part), "{console}: {found:?}");
    }
    let two = "authentication: {oidc: [{issuer: 'https://a', audience: b, console: {clientId: c, externalUrl: 'https://x'}}, \
               {name: d, issuer: 'https://d', audience: b, console: {clientId: c, externalUrl: 'https://y'}}]}";
    assert!(
        faults(&format!("{two}\n{SMALLEST}"))[0].contains("oidc[1].console.externalUrl: another issuer has https://x")
    );
}

#[test]
fn an_only_tenant_can_have_all_namespaces() {
    let access = parse("tenants: {default: {namespaces: ['*']}}").unwrap();
    assert_eq!(access.tenant("default").unwrap().namespaces, Namespaces::All);
    assert_eq!(
        faults("tenants: {a: {namespaces: ['*']}, b: {namespaces: [b]}}"),
        ["line 1, column 28: tenants.a.namespaces[0]: only a tenant without others can have all namespaces"]
    );
}

#[test]
fn the_default_version_is_one_of_the_permitted_ones() {
    let version = |fields: &str| {
        let text = format!("tenants: {{a: {{namespaces: [a], {fields}}}}}");
        let access = parse(&text).map_err(|error| error.faults[0].message.clone())?;
        Ok(access.tenant("a").unwrap().default_spark_version.clone())
    };
    let default = |text: &str| Ok::<_, String>(Some(text.to_owned()));
    assert_eq!(version("defaultSparkVersion: '4.1'"), default("4.1"));
    assert_eq!(version("sparkVersions: ['3.5', '4.1'], defaultSparkVersion: 4.1.4"), default("4.1.4"));
    assert_eq!(version("sparkVersions: [3.5.9, 4.1.4], defaultSparkVersion: '4.1'"), default("4.1"));
    assert_eq!(version("sparkVersions: ['3.5']"), default("3.5"), "there is no other");
    assert_eq!(version("sparkVersions: ['3.5', '4.1']"), Ok(None));
    for (fields, message) in [
        ("sparkVersions: ['4.1'], defaultSparkVersion: '4.10'", "it isn't among `sparkVersions`: 4.1"),
        ("defaultSparkVersion: latest", "a version of Spark is written like \"4.3.0\", a line like \"4.3\""),
    ] {
        assert_eq!(version(fields), Err(message.to_owned()), "{fields}");
    }
}

#[test]
fn a_policy_is_passed_on_as_it_is() {
    let access = parse("tenants: {a: {namespaces: [a], policy: {images: ['x/**'], limits: {cores: 4}}}}").unwrap();
    assert_eq!(access.tenant("a").unwrap().policy, Some(json!({"images": ["x/**"], "limits": {"cores": 4}})));
}

#[test]
fn a_fault_of_the_form_has_its_place() {
    for (text, line, column, part) in [
        ("tenants:\n  a:\n    namespace: [a]\n", 3, 5, "namespace"),
        ("tenants: {a: {namespaces: [a]}}\nfoo: 1\n", 2, 1, "foo"),
        ("tenants:\n  a: {namespaces: [a]}\n  a: {namespaces: [b]}\n", 3, 3, "a"),
        ("tenants:\n  a: {namespaces: a}\n", 2, 19, "sequence"),
        ("tenants: {a: {namespaces: [a], caps: {retries: many}}}\n", 1, 48, ""),
        ("tenants: [\n", 1, 10, ""),
        ("tenants: {a: {namespaces: [a}}", 1, 27, ""),
    ] {
        let fault = &parse(text).unwrap_err().faults[0];
        assert_eq!((fault.line, fault.column), (line, column), "{text}: {fault}");
        assert!(fault.message.contains(part), "{text}: {fault}");
    }
    assert!(parse("").is_err());
    assert!(parse("members: []").unwrap_err().to_string().contains("tenants"));
    assert!(parse(&" ".repeat(LARGEST + 1)).unwrap_err().to_string().contains("1048577 bytes"));
}

#[test]
fn all_faults_of_values_are_reported_at_once_in_the_order_of_the_file() {
    let faults = faults(include_str!("tests/faults.yaml"));
    assert_eq!(faults.join("\n"), include_str!("tests/faults.txt").trim_end());
}

#[test]
fn only_a_member_that_says_so_owns_its_pods() {
    let file = |role: &str, everywhere: &str| {
        format!(
            "authentication: {{kubernetes: {{audience: s}}}}\n\
             tenants: {{a: {{namespaces: [a], members: [{{role: {role}, subjects: ['kubernetes:o'], ownsPods: true}}]}}, b: {{namespaces: [b]}}}}\n\
             members: [{{role: submitter, subjects: ['kubernetes:p']{everywhere}}}]"
        )
    };
    let access = parse(&file("submitter", "")).unwrap();
    let of = |name: &str| Principal::new(Provider::Kubernetes, name).unwrap();
    for (name, tenant, owns) in [("o", "a", true), ("o", "b", false), ("p", "a", false), ("x", "a", false)] {
        assert_eq!(access.may_own_pods(&of(name), tenant), owns, "{name} in {tenant}");
    }
    let access = parse(&file("operator", ", ownsPods: true")).unwrap();
    assert!(access.may_own_pods(&of("p"), "b") && !access.may_own_pods(&of("o"), "b"));
    assert!(Access::open().may_own_pods(&Principal::anonymous(), "default"));
    assert_eq!(
        faults(&file("viewer", "")),
        ["line 2, column 95: tenants.a.members[0].ownsPods: a viewer submits nothing: give it the role submitter"]
    );
}

#[test]
fn a_group_needs_a_provider_with_groups() {
    let text = "authentication: {oidc: [{issuer: 'https://a', audience: b}], kubernetes: {audience: s}}\n\
                tenants: {a: {namespaces: [a], members: [{role: viewer, groups: ['oidc:x', 'kubernetes:y', 'key:z']}]}}";
    assert_eq!(
        faults(text),
        [
            "line 2, column 66: tenants.a.members[0].groups[0]: no provider of this file has such names with the prefix `oidc`: \
             there are `kubernetes`",
            "line 2, column 92: tenants.a.members[0].groups[2]: no provider of this file has such names with the prefix `key`: \
             there are `kubernetes`",
        ]
    );
}

#[test]
fn a_file_without_any_provider_is_refused() {
    let text = format!("authentication: {{apiKeys: {{enabled: false}}}}\n{SMALLEST}");
    assert_eq!(faults(&text), ["authentication: no caller could be authenticated: configure a provider"]);
    assert_eq!(faults("tenants: {}"), ["tenants: there must be one tenant at least"]);
}

#[test]
fn the_url_of_an_issuer_is_checked() {
    let issuer = |url: &str| {
        let text = format!("authentication: {{oidc: [{{issuer: '{url}', audience: b}}]}}\n{SMALLEST}");
        parse(&text).map(|_| ()).map_err(|error| error.faults[0].message.clone())
    };
    for url in ["https://id.example.org/realms/data", "http://localhost:8080", "http://127.0.0.1:1/x", "http://[::1]:1"]
    {
        assert_eq!(issuer(url), Ok(()), "{url}");
    }
    for url in [
        "",
        "id.example.org",
        "https://",
        "https:///x",
        "ftp://x",
        "http://id.example.org",
        "https://u@x",
        "https://x?a",
        "https://x#a",
        "https://a b",
        "http://localhost.evil.org",
    ] {
        assert!(issuer(url).is_err(), "{url}");
    }
}

#[test]
fn no_text_makes_parsing_panic() {
    use proptest::prelude::*;
    let text = prop_oneof![
        ".{0,200}",
        proptest::collection::vec(0..EXAMPLE.len(), 1..4).prop_map(|places| {
            let mut text = EXAMPLE.as_bytes().to_vec();
            for at in places {
                text[at] = b"\n:{}[]'-& *"[at % 11];
            }
            String::from_utf8_lossy(&text).into_owned()
        }),
    ];
    proptest!(|(text in text)| {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.faults.is_empty());
        }
    });
}
