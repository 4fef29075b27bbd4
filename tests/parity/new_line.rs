//! What a new Spark line changes: its answers beside those of the line before, by the code that they concern.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    answer::Answer,
    case::Case,
    compare::{Difference, differences},
};

/// The code that builds a leaf whose path has this text; the first that matches. Below `crates/spark/src`.
const CODE: [(&str, &str); 24] = [
    ("refusal", "submit/ and conf/: what is refused, and in which words"),
    ("Driver.args", "features/driver_command.rs"),
    ("spark-local-dir", "features/local_dirs.rs"),
    ("SPARK_LOCAL_DIRS", "features/local_dirs.rs"),
    ("Service.", "features/driver_service.rs"),
    ("NetworkPolicy", "features/network_policy.rs"),
    ("PodGroup", "features/volcano.rs"),
    ("Claim", "features/mount_volumes.rs"),
    ("kubernetes-credentials", "features/driver_kubernetes_credentials.rs"),
    ("krb5", "features/kerberos_conf.rs"),
    ("hadoop", "features/hadoop_conf.rs"),
    ("pod-template", "features/pod_template_config_map.rs"),
    ("podspec", "features/pod_template_config_map.rs"),
    ("ConfigMap", "features/pod_template_config_map.rs, features/hadoop_conf.rs, features/kerberos_conf.rs"),
    ("Secret", "features/driver_kubernetes_credentials.rs, features/kerberos_conf.rs"),
    ("ports[", "features/driver_ports.rs, features/driver_service.rs"),
    ("secretKeyRef", "features/env_secrets.rs"),
    ("volume", "features/mount_volumes.rs, features/mount_secrets.rs"),
    ("resources.", "features/basic_driver/memory.rs, features/basic_driver/custom_resources.rs"),
    ("Config.", "builder.rs: the ConfigMap"),
    ("Properties[", "builder.rs and keys/: the driver's properties"),
    ("Driver.", "features/basic_driver.rs"),
    ("Pod.", "features/basic_driver.rs"),
    ("", "builder.rs"),
];

/// The changes of one part of the code.
#[derive(Debug, Default)]
struct Part {
    cases: BTreeSet<String>,
    /// One example of each path.
    examples: BTreeMap<String, (String, Difference)>,
}

/// What differs between the answers of two releases.
#[derive(Debug)]
pub(crate) struct Changes {
    known: String,
    new: String,
    compared: usize,
    parts: BTreeMap<&'static str, Part>,
}

impl Changes {
    pub(crate) fn new(known: &str, new: &str) -> Self {
        Self { known: known.to_owned(), new: new.to_owned(), compared: 0, parts: BTreeMap::new() }
    }

    /// Adds the answers to one case.
    pub(crate) fn add(&mut self, case: &Case, known: &Answer, new: &Answer) {
        self.compared += 1;
        for difference in differences(known, new) {
            if self.is_expected(&difference) {
                continue;
            }
            let part = self.parts.entry(code_of(&difference.path)).or_default();
            part.cases.insert(case.name.clone());
            part.examples.entry(difference.path.clone()).or_insert_with(|| (case.name.clone(), difference));
        }
    }

    /// Returns whether only the version differs, or the random name of a directory for uploads.
    fn is_expected(&self, Difference { ours, sparks, .. }: &Difference) -> bool {
        let is_upload = |text: &str| text.contains("/spark-upload-");
        ours.replace(&self.known, &self.new) == *sparks || is_upload(ours) && is_upload(sparks)
    }
}

/// Returns the code that builds a leaf.
fn code_of(path: &str) -> &'static str {
    CODE.iter().find(|(part, _)| path.contains(part)).map_or("builder.rs", |(_, code)| code)
}

impl std::fmt::Display for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { known, new, compared, parts } = self;
        let differ: BTreeSet<&String> = parts.values().flat_map(|part| &part.cases).collect();
        writeln!(f, "Spark {new} beside {known}: {} of {compared} cases differ", differ.len())?;
        for (code, Part { cases, examples }) in parts {
            writeln!(f, "\n{code}: {} cases", cases.len())?;
            for (path, (case, Difference { ours, sparks, .. })) in examples.iter().take(8) {
                writeln!(
                    f,
                    "    {path}, as in {case}\n        {known}  {}\n        {new}  {}",
                    cut(ours),
                    cut(sparks)
                )?;
            }
            if examples.len() > 8 {
                writeln!(f, "    and {} more paths", examples.len() - 8)?;
            }
        }
        Ok(())
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}
