//! Checks of the operator's defaults.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use sparkgate_access::Namespaces;
use sparkgate_tenancy::access_file::AccessFile;

const NAMESPACE: &str = "spark.kubernetes.namespace";
const ACCOUNT: &str = "spark.kubernetes.authenticate.driver.serviceAccountName";
const IMAGES: [&str; 3] = [
    "spark.kubernetes.container.image",
    "spark.kubernetes.driver.container.image",
    "spark.kubernetes.executor.container.image",
];

/// The defaults of the gateway, of its Spark lines and of its tenants.
pub struct Defaults(Vec<Group>);

/// Defaults of one origin.
struct Group {
    origin: String,
    properties: BTreeMap<String, String>,
    /// The namespaces for which they count; `None` for all.
    namespaces: Option<Vec<String>>,
}

impl Defaults {
    /// Collects the defaults.
    pub fn new(access: &AccessFile) -> Self {
        let spark = access.settings().spark;
        let group = |origin: String, properties: &BTreeMap<String, String>, namespaces| Group {
            origin,
            properties: properties.clone(),
            namespaces,
        };
        let mut groups = vec![group("the Spark defaults".to_owned(), &spark.defaults, None)];
        let named = spark.submitter.all_named_defaults();
        groups.extend(named.map(|(name, properties)| group(format!("the named defaults {name}"), properties, None)));
        let lines = spark.lines.defaults();
        groups
            .extend(lines.map(|(version, properties)| group(format!("the line of Spark {version}"), properties, None)));
        let lines = spark.lines.defaults();
        groups.extend(lines.map(|(version, properties)| group(format!("the Spark line {version}"), properties, None)));
        let tenancy = access.current();
        for tenant in tenancy.access().tenants() {
            let namespaces = match &tenant.namespaces {
                Namespaces::All => None,
                Namespaces::Listed(names) => Some(names.clone()),
            };
            for properties in [&tenant.defaults, &tenant.properties] {
                groups.push(group(format!("the tenant {}", tenant.name), properties, namespaces.clone()));
            }
        }
        Self(groups)
    }

    /// Checks the names of images.
    pub fn check_images(&self) -> Vec<Finding> {
        let mut seen = BTreeSet::new();
        let mut findings = Vec::new();
        for Group { origin, properties, .. } in &self.0 {
            for image in IMAGES.iter().filter_map(|key| properties.get(*key)) {
                if seen.insert((image, origin)) {
                    findings.push(image_name(image, origin));
                }
            }
        }
        if findings.is_empty() {
            let text = "no defaults name an image: each request has to";
            findings.push(Finding::ok("defaults.image", text));
        }
        findings
    }

    /// Returns the service accounts that defaults name: account, namespace and origin. An account without a namespace may be used
    /// in each of `served`.
    pub(super) fn service_accounts(&self, served: &[String]) -> BTreeSet<(String, String, String)> {
        let mut accounts = BTreeSet::new();
        for Group { origin, properties, namespaces } in &self.0 {
            let Some(account) = properties.get(ACCOUNT) else { continue };
            let named = properties.get(NAMESPACE).map(|name| vec![name.clone()]);
            let namespaces = namespaces.clone().or(named).unwrap_or_else(|| served.to_vec());
            accounts.extend(namespaces.into_iter().map(|namespace| (account.clone(), namespace, origin.clone())));
        }
        accounts
    }
}

/// Judges the name of an image: does it always mean the same image?
fn image_name(image: &str, origin: &str) -> Finding {
    const CHECK: &str = "defaults.image";
    if image.contains('@') {
        return Finding::ok(CHECK, format!("the image {image} of {origin} is named by its digest"));
    }
    // A colon before the last slash belongs to the registry's port.
    let tag = image.rsplit('/').next().and_then(|name| name.split_once(':')).map(|(_, tag)| tag);
    let remedy = "name a version, or better the digest (NAME@sha256:…): drivers and executors of one submission could otherwise \
                  run different images";
    match tag {
        None => {
            Finding::warning(CHECK, format!("the image {image} of {origin} has no tag, which means `latest`"), remedy)
        }
        Some("latest") => {
            Finding::warning(CHECK, format!("the image {image} of {origin} has the tag `latest`"), remedy)
        }
        Some(_) => Finding::ok(CHECK, format!("the image {image} of {origin} has a tag")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn an_image_needs_a_tag_that_is_not_latest() {
        for (image, level) in [
            ("spark", Level::Warning),
            ("registry.example:5000/spark", Level::Warning),
            ("spark:latest", Level::Warning),
            ("registry.example:5000/team/spark:latest", Level::Warning),
            ("spark:4.3.0", Level::Ok),
            ("registry.example:5000/spark:4.3.0", Level::Ok),
            ("spark@sha256:0000", Level::Ok),
            ("spark:latest@sha256:0000", Level::Ok),
        ] {
            assert_eq!(image_name(image, "x").level, level, "{image}");
        }
    }
}
