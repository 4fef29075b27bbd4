//! Checks the tenants.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_saphyr::Spanned;
use sparkgate_submission::parse_duration;

use super::{
    document::{CapsDocument, Entries, PricesDocument, TenantDocument, Text},
    fault::Faults,
    member::{self, Known},
};
use crate::{
    name::{is_label, is_subdomain},
    pattern::{Pattern, Patterns},
    tenant::{Caps, Namespaces, Tenant, TenantLimits, TenantPrices, is_price},
};

/// Checks all tenants. Their default queues, by name, are checked along with the queues.
pub(super) fn check(
    documents: Entries<TenantDocument>,
    known: &Known,
    faults: &mut Faults,
) -> (Vec<Tenant>, Vec<(String, Option<Text>)>) {
    if documents.0.is_empty() {
        faults.add_without_place("tenants", "there must be one tenant at least");
    }
    // The first tenant with each namespace.
    let mut owners = BTreeMap::new();
    let is_only = documents.0.len() == 1;
    documents
        .0
        .into_iter()
        .map(|(name, mut document)| {
            let default_queue = (name.value.clone(), document.default_queue.take());
            (tenant(name, document, is_only, &mut owners, known, faults), default_queue)
        })
        .unzip()
}

fn tenant(
    name: Text,
    document: TenantDocument,
    is_only: bool,
    owners: &mut BTreeMap<String, String>,
    known: &Known,
    faults: &mut Faults,
) -> Tenant {
    let path = format!("tenants.{}", name.value);
    if !is_label(&name.value) {
        faults.add(&name.referenced, &path, format!("a tenant's name has {LABEL}"));
    }
    let (properties, defaults) = properties(document.properties, document.defaults, &path, faults);
    let limits = document.limits.unwrap_or_default();
    let spark_versions = texts(document.spark_versions, &format!("{path}.sparkVersions"), is_version, faults);
    let default_spark_version = default_version(document.default_spark_version, &spark_versions, &path, faults);
    Tenant {
        namespaces: namespaces(document.namespaces, &name.value, is_only, &path, owners, faults),
        service_accounts: texts(document.service_accounts, &format!("{path}.serviceAccounts"), is_account, faults),
        spark_versions,
        default_spark_version,
        named_defaults: patterns(document.named_defaults, &format!("{path}.namedDefaults"), faults),
        files: patterns(document.files, &format!("{path}.files"), faults),
        properties,
        defaults,
        caps: caps(document.caps.unwrap_or_default(), &format!("{path}.caps"), faults),
        limits: TenantLimits {
            queued: limits.queued,
            subscribers: limits.subscribers,
            log_readers: limits.log_readers,
            file_bytes: limits.file_bytes,
            record_bytes: limits.record_bytes,
        },
        prices: document.prices.map(|document| prices(document, &format!("{path}.prices"), faults)),
        default_queue: None,
        has_shared_sessions: document.sessions.unwrap_or_default().shared.unwrap_or_default(),
        policy: document.policy,
        members: member::check(document.members.unwrap_or_default(), &format!("{path}.members"), known, false, faults),
        name: name.value,
    }
}

fn prices(document: PricesDocument, path: &str, faults: &mut Faults) -> TenantPrices {
    let mut price = |name: &str, price: Text| {
        if !is_price(&price.value) {
            let reason =
                "a price is a decimal number such as 0.04, with at most nine digits before and after the point";
            faults.add(&price.referenced, format!("{path}.{name}"), reason);
        }
        price.value
    };
    TenantPrices { core_hour: price("coreHour", document.core_hour), gib_hour: price("gibHour", document.gib_hour) }
}

fn namespaces(
    names: Spanned<Vec<Text>>,
    tenant: &str,
    is_only: bool,
    path: &str,
    owners: &mut BTreeMap<String, String>,
    faults: &mut Faults,
) -> Namespaces {
    if let [all] = names.value.as_slice()
        && all.value == "*"
    {
        if !is_only {
            let reason = "only a tenant without others can have all namespaces";
            faults.add(&all.referenced, format!("{path}.namespaces[0]"), reason);
        }
        return Namespaces::All;
    }
    if names.value.is_empty() {
        faults.add(&names.referenced, format!("{path}.namespaces"), "a tenant has one namespace at least");
    }
    let mut listed = Vec::new();
    for (index, name) in names.value.into_iter().enumerate() {
        let reason = if !is_label(&name.value) {
            Some(format!("a namespace's name has {LABEL}"))
        } else if name.value.starts_with("kube-") {
            Some("namespaces of Kubernetes itself can't belong to a tenant".to_owned())
        } else {
            owners.get(&name.value).map(|owner| match owner == tenant {
                true => "it is listed twice".to_owned(),
                false => format!("it belongs to tenant {owner} already: a namespace has one tenant"),
            })
        };
        match reason {
            Some(reason) => faults.add(&name.referenced, format!("{path}.namespaces[{index}]"), reason),
            None => {
                owners.insert(name.value.clone(), tenant.to_owned());
                listed.push(name.value);
            }
        }
    }
    Namespaces::Listed(listed)
}

/// Checks names: each of the form, none twice.
fn texts(
    texts: Option<Vec<Text>>,
    path: &str,
    form: fn(&str) -> Result<(), &'static str>,
    faults: &mut Faults,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut checked = Vec::new();
    for (index, text) in texts.unwrap_or_default().into_iter().enumerate() {
        let fine = form(&text.value).and_then(|()| match seen.insert(text.value.clone()) {
            true => Ok(()),
            false => Err("it is listed twice"),
        });
        match fine {
            Ok(()) => checked.push(text.value),
            Err(reason) => faults.add(&text.referenced, format!("{path}[{index}]"), reason),
        }
    }
    checked
}

/// Checks the default version, which must be one that requests may use. The only one of these is the default without being named.
fn default_version(text: Option<Text>, permitted: &[String], path: &str, faults: &mut Faults) -> Option<String> {
    let Some(text) = text else {
        return if let [only] = permitted { Some(only.clone()) } else { None };
    };
    // A line includes its releases.
    let includes = |line: &str, version: &str| {
        version.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_permitted = permitted.is_empty()
        || permitted.iter().any(|other| includes(other, &text.value) || includes(&text.value, other));
    let fine = is_version(&text.value).map_err(str::to_owned).and_then(|()| match is_permitted {
        true => Ok(()),
        false => Err(format!("it isn't among `sparkVersions`: {}", permitted.join(", "))),
    });
    if let Err(reason) = fine {
        faults.add(&text.referenced, format!("{path}.defaultSparkVersion"), reason);
    }
    Some(text.value)
}

fn patterns(texts: Option<Vec<Text>>, path: &str, faults: &mut Faults) -> Patterns {
    let Some(texts) = texts else { return Patterns::All };
    let mut patterns = Vec::new();
    for (index, text) in texts.into_iter().enumerate() {
        match Pattern::parse(&text.value) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => faults.add(&text.referenced, format!("{path}[{index}]"), error),
        }
    }
    Patterns::Listed(patterns)
}

type Properties = BTreeMap<String, String>;

/// Options that can't be forced on all requests, each with the reason.
const OF_ONE_REQUEST: [(&str, &str); 3] = [
    ("spark.sparkgate.clientId", "it identifies one submission, so it can't be forced"),
    ("spark.sparkgate.defaults", "named defaults are weaker than a request: put their properties here"),
    ("spark.sparkgate.idempotencyKey", "it identifies one request, so it can't be forced"),
];

/// Checks the forced properties and the defaults together: a default of a forced property would have no effect.
fn properties(
    forced: Option<Entries<String>>,
    defaults: Option<Entries<String>>,
    path: &str,
    faults: &mut Faults,
) -> (Properties, Properties) {
    for (key, _) in forced.iter().flat_map(|forced| &forced.0) {
        if let Some((_, reason)) = OF_ONE_REQUEST.iter().find(|(name, _)| *name == key.value) {
            faults.add(&key.referenced, format!("{path}.properties[{:?}]", key.value), *reason);
        }
    }
    let forced = read_section(forced, &format!("{path}.properties"), &BTreeMap::new(), faults);
    let defaults = read_section(defaults, &format!("{path}.defaults"), &forced, faults);
    (forced, defaults)
}

fn read_section(section: Option<Entries<String>>, path: &str, forced: &Properties, faults: &mut Faults) -> Properties {
    let section = section.unwrap_or(Entries(Vec::new()));
    for (key, _) in &section.0 {
        let at = format!("{path}[{:?}]", key.value);
        if key.value.is_empty() || key.value.chars().any(|c| c.is_whitespace() || c.is_control()) {
            faults.add(&key.referenced, at, "the name of a property has no spaces");
        } else if forced.contains_key(&key.value) {
            faults.add(
                &key.referenced,
                at,
                "it is forced by `properties`, so its default has no effect: remove one of them",
            );
        }
    }
    section.into_map()
}

fn caps(document: CapsDocument, path: &str, faults: &mut Faults) -> Caps {
    let mut time = |name: &str, text: Option<Text>| {
        let text = text?;
        let time = parse_duration(&text.value).filter(|time| *time > Duration::ZERO || name == "killGrace");
        if time.is_none() {
            faults.add(&text.referenced, format!("{path}.{name}"), "a time is written like `90s`, `10min` or `1h30m`");
        }
        time
    };
    Caps {
        start_timeout: time("startTimeout", document.start_timeout),
        run_timeout: time("runTimeout", document.run_timeout),
        kill_grace: time("killGrace", document.kill_grace),
        retries: document.retries,
    }
}

const LABEL: &str = "up to 63 lower-case letters, digits and hyphens, and begins and ends with a letter or a digit";

/// Checks that the text can be the name of a service account.
fn is_account(text: &str) -> Result<(), &'static str> {
    is_subdomain(text).then_some(()).ok_or("a service account's name has lower-case letters, digits, hyphens and dots")
}

/// Checks that the text is like a version or a line of Spark.
fn is_version(text: &str) -> Result<(), &'static str> {
    let mut numbers = text.split('.');
    let mut number = || numbers.next().is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
    let fine = number() && number() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    fine.then_some(()).ok_or("a version of Spark is written like \"4.3.0\", a line like \"4.3\"")
}
