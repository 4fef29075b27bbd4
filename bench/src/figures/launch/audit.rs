//! The writes to the API server, taken from its audit log.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::Context;
use serde::Deserialize;
use sparkgate_testing::rights;

/// Requests by verb and resource, for so many jobs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes {
    jobs: usize,
    counts: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    user: User,
}

#[derive(Default, Deserialize)]
struct Object {
    #[serde(default)]
    resource: String,
    subresource: Option<String>,
    /// None for objects without a namespace.
    #[serde(default)]
    namespace: String,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

impl Writes {
    /// Counts all writes in the jobs' namespaces except those of the server itself and of the kubelet.
    pub(crate) fn read(audit_log: &Path, jobs: usize) -> anyhow::Result<Self> {
        let log = File::open(audit_log).with_context(|| format!("opening {}", audit_log.display()))?;
        let mut counts = BTreeMap::new();
        for line in BufReader::new(log).lines() {
            // The last line may be incomplete.
            let Ok(event) = serde_json::from_str::<Event>(&line?) else { continue };
            let of_jobs = super::NAMESPACES.contains(&event.object_ref.namespace.as_str());
            // Only the (played) kubelet writes subresources.
            let of_kubelet = event.object_ref.subresource.is_some();
            let name = &event.user.username;
            let of_server = name.starts_with("system:") && name != rights::USER_EVERYWHERE;
            if of_jobs && !of_kubelet && !of_server {
                *counts.entry(format!("{} {}", event.verb, event.object_ref.resource)).or_default() += 1;
            }
        }
        Ok(Self { jobs, counts })
    }

    /// Returns the writes since an earlier count.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        self.jobs -= before.jobs;
        for (what, count) in &mut self.counts {
            *count -= before.counts.get(what).copied().unwrap_or_default();
        }
        self
    }

    /// Returns the requests per job: each kind, and the total.
    pub(crate) fn each_job(&self) -> Vec<(String, f64)> {
        let each = |count: usize| count as f64 / self.jobs.max(1) as f64;
        let mut all: Vec<_> = self.counts.iter().map(|(what, count)| (what.clone(), each(*count))).collect();
        all.push(("all".to_owned(), each(self.counts.values().sum())));
        all
    }
}
