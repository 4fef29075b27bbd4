//! Checks the members of tenants.

use std::collections::BTreeSet;

use super::{
    document::{MemberDocument, Text},
    fault::Faults,
};
use crate::{
    authentication::Authentication,
    principal::{Provider, check_name, split},
    role::Role,
    tenant::Member,
};

/// The prefixes of the subjects and groups that the providers of a file can vouch for.
pub(super) struct Known {
    subjects: BTreeSet<String>,
    groups: BTreeSet<String>,
}

impl Known {
    pub(super) fn new(authentication: &Authentication) -> Self {
        let (mut subjects, mut groups) = (BTreeSet::new(), BTreeSet::new());
        for issuer in &authentication.oidc {
            subjects.insert(issuer.name.clone());
            if issuer.groups_claim.is_some() {
                groups.insert(issuer.name.clone());
            }
        }
        let proxy_groups = authentication.proxy.as_ref().is_some_and(|proxy| proxy.groups_header.is_some());
        for (provider, configured, has_groups) in [
            (Provider::Kubernetes, authentication.kubernetes.is_some(), true),
            (Provider::ApiKey, authentication.api_keys, false),
            (Provider::Certificate, authentication.certificates.is_some(), true),
            (Provider::Proxy, authentication.proxy.is_some(), proxy_groups),
            (Provider::SparkJws, authentication.spark_jws.is_some(), false),
            (Provider::SparkListener, authentication.spark_listener.is_some(), false),
        ] {
            if configured {
                subjects.insert(provider.prefix().to_owned());
                if has_groups {
                    groups.insert(provider.prefix().to_owned());
                }
            }
        }
        Self { subjects, groups }
    }
}

/// Checks a list of members. `everywhere` says that it is the list for all tenants, in which alone admins may be.
pub(super) fn check(
    documents: Vec<MemberDocument>,
    path: &str,
    known: &Known,
    everywhere: bool,
    faults: &mut Faults,
) -> Vec<Member> {
    let mut members = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        let place = document.role.referenced;
        let role = match document.role.value.parse() {
            Ok(Role::Admin) if !everywhere => {
                faults.add(&place, format!("{path}.role"), "admin is a role in every tenant: put it below `members`");
                Role::Operator
            }
            Ok(role) => role,
            Err(error) => {
                faults.add(&place, format!("{path}.role"), error);
                Role::Viewer
            }
        };
        let owns_pods = document.owns_pods.is_some_and(|owns| {
            if owns.value && role < Role::Submitter {
                faults.add(
                    &owns.referenced,
                    format!("{path}.ownsPods"),
                    "a viewer submits nothing: give it the role submitter",
                );
            }
            owns.value
        });
        let groups = document.groups.unwrap_or_default();
        let subjects = document.subjects.unwrap_or_default();
        if groups.is_empty() && subjects.is_empty() {
            faults.add(&place, &path, "a member has `groups` or `subjects`");
        }
        let subjects = names(subjects, &format!("{path}.subjects"), &known.subjects, faults);
        let groups = names(groups, &format!("{path}.groups"), &known.groups, faults);
        members.push(Member { role, subjects, groups, owns_pods });
    }
    members
}

/// Checks subjects or groups.
fn names(texts: Vec<Text>, path: &str, known: &BTreeSet<String>, faults: &mut Faults) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (index, text) in texts.into_iter().enumerate() {
        let reason = match split(&text.value) {
            None => Some("it has no prefix: write `<provider>:<name>`, for example `oidc:alice`".to_owned()),
            Some((prefix, _)) if !known.contains(prefix) => Some(unknown(prefix, known)),
            Some((_, name)) if name.contains('*') => {
                Some("names are compared exactly, `*` is no pattern here: use a group".to_owned())
            }
            Some((_, name)) => check_name(name).err().map(|error| error.to_string()),
        };
        match reason {
            Some(reason) => faults.add(&text.referenced, format!("{path}[{index}]"), reason),
            None => drop(names.insert(text.value)),
        }
    }
    names
}

fn unknown(prefix: &str, known: &BTreeSet<String>) -> String {
    if known.is_empty() {
        return format!("no provider of this file has such names with the prefix `{prefix}`, and no other has any");
    }
    let known = known.iter().map(|prefix| format!("`{prefix}`")).collect::<Vec<_>>().join(", ");
    format!("no provider of this file has such names with the prefix `{prefix}`: there are {known}")
}
