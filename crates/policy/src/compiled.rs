//! The compiled form of a document, and its faults.

use std::collections::BTreeMap;

use crate::{
    document::{
        Amount, DEFAULT_PROJECTED_SOURCES, DEFAULT_VOLUMES, InlineSecrets, Keys, Limits, Packages, PodLimits,
        PodSecurity, PolicyDocument,
    },
    expression::CelRules,
    image,
    pattern::Patterns,
    uri,
    violation::Fault,
    volume,
};
use sparkgate_spark::Quantity;

/// The rules of a policy, with compiled patterns, quantities and expressions.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) document: PolicyDocument,
    /// The tenant's service accounts. If it is empty, any is permitted.
    pub(crate) service_accounts: Vec<String>,
    pub(crate) images: Option<Patterns>,
    pub(crate) audiences: Patterns,
    pub(crate) volumes: Vec<String>,
    pub(crate) projected_sources: Vec<String>,
    pub(crate) host_paths: Vec<String>,
    pub(crate) claims: Option<Patterns>,
    pub(crate) csi_drivers: Option<Patterns>,
    pub(crate) nfs_servers: Option<Patterns>,
    pub(crate) secrets: Option<Patterns>,
    pub(crate) config_maps: Option<Patterns>,
    pub(crate) node_selectors: Option<Patterns>,
    pub(crate) tolerations: Option<Patterns>,
    pub(crate) priority_classes: Option<Patterns>,
    pub(crate) runtime_classes: Option<Patterns>,
    pub(crate) schedulers: Option<Patterns>,
    pub(crate) queues: Option<Patterns>,
    pub(crate) storage_classes: Option<Patterns>,
    pub(crate) limits: CompiledLimits,
    pub(crate) labels: CompiledKeys,
    pub(crate) annotations: CompiledKeys,
    pub(crate) resources: Option<Patterns>,
    pub(crate) properties: CompiledKeys,
    pub(crate) cel: CelRules,
}

#[derive(Debug)]
pub(crate) struct CompiledKeys {
    pub(crate) allow: Option<Patterns>,
    pub(crate) deny: Patterns,
}

#[derive(Debug)]
pub(crate) struct CompiledLimits {
    pub(crate) driver: CompiledPodLimits,
    pub(crate) executor: CompiledPodLimits,
    pub(crate) total_cores: Option<Quantity>,
    pub(crate) total_memory: Option<Quantity>,
    pub(crate) storage: Option<Quantity>,
    pub(crate) empty_dir: Option<Quantity>,
    pub(crate) resources: Option<BTreeMap<String, Quantity>>,
}

#[derive(Debug)]
pub(crate) struct CompiledPodLimits {
    pub(crate) cores: Option<Quantity>,
    pub(crate) memory: Option<Quantity>,
    pub(crate) ephemeral_storage: Option<Quantity>,
}

struct Compiler {
    faults: Vec<Fault>,
}

impl Compiler {
    fn rules(&mut self, document: PolicyDocument, service_accounts: &[String]) -> Rules {
        let d = &document;
        let words = |listed: &Option<Vec<String>>, default: &[&str]| match listed {
            Some(listed) => listed.clone(),
            None => default.iter().map(|word| (*word).to_owned()).collect(),
        };
        let volumes = words(&d.volumes, &DEFAULT_VOLUMES);
        self.known_words(&volumes, "volumes", volume::TYPES);
        let projected_sources = words(&d.projected_sources, &DEFAULT_PROJECTED_SOURCES);
        self.known_words(&projected_sources, "projectedSources", volume::PROJECTED_SOURCES);
        if d.images.as_ref().is_some_and(Vec::is_empty) {
            let reason = "an empty list permits no driver at all: leave it out to permit any image";
            self.faults.push(Fault::new("images", reason));
        }
        Rules {
            service_accounts: service_accounts.to_vec(),
            images: self.translated(d.images.as_deref(), "images", image::pattern),
            audiences: Patterns::compile(
                &d.service_account_tokens.audiences,
                "serviceAccountTokens.audiences",
                &mut self.faults,
            ),
            host_paths: self.host_paths(&d.host_paths),
            claims: self.patterns(d.claims.as_deref(), "claims"),
            csi_drivers: self.patterns(d.csi_drivers.as_deref(), "csiDrivers"),
            nfs_servers: self.patterns(d.nfs_servers.as_deref(), "nfsServers"),
            secrets: self.patterns(d.secrets.as_deref(), "secrets"),
            config_maps: self.patterns(d.config_maps.as_deref(), "configMaps"),
            node_selectors: self.patterns(d.node_selectors.as_deref(), "nodeSelectors"),
            tolerations: self.patterns(d.tolerations.as_deref(), "tolerations"),
            priority_classes: self.patterns(d.priority_classes.as_deref(), "priorityClasses"),
            runtime_classes: self.patterns(d.runtime_classes.as_deref(), "runtimeClasses"),
            schedulers: self.patterns(d.schedulers.as_deref(), "schedulers"),
            queues: self.patterns(d.queues.as_deref(), "queues"),
            storage_classes: self.patterns(d.storage_classes.as_deref(), "storageClasses"),
            limits: self.limits(&d.limits),
            labels: self.keys(&d.labels, "labels"),
            annotations: self.keys(&d.annotations, "annotations"),
            resources: self.translated(d.resources.as_deref(), "resources", uri::pattern),
            properties: self.keys(&d.properties, "properties"),
            cel: CelRules::compile(&d.cel, &mut self.faults),
            volumes,
            projected_sources,
            document,
        }
    }

    fn patterns(&mut self, listed: Option<&[String]>, at: &str) -> Option<Patterns> {
        listed.map(|listed| Patterns::compile(listed, at, &mut self.faults))
    }

    fn translated(
        &mut self,
        listed: Option<&[String]>,
        at: &str,
        translate: impl Fn(&str) -> Result<String, String>,
    ) -> Option<Patterns> {
        listed.map(|listed| Patterns::compile_with(listed, at, &mut self.faults, translate))
    }

    fn keys(&mut self, keys: &Keys, at: &str) -> CompiledKeys {
        CompiledKeys {
            allow: self.patterns(keys.allow.as_deref(), &format!("{at}.allow")),
            deny: Patterns::compile(&keys.deny, &format!("{at}.deny"), &mut self.faults),
        }
    }

    fn known_words(&mut self, words: &[String], at: &str, known: &[&str]) {
        for (index, word) in words.iter().enumerate() {
            if !known.contains(&word.as_str()) {
                let reason = format!("`{word}` is unknown; the words are {}", known.join(", "));
                self.faults.push(Fault::new(&format!("{at}[{index}]"), reason));
            }
        }
    }

    fn host_paths(&mut self, paths: &[String]) -> Vec<String> {
        let mut prefixes = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            match volume::normal_path(path) {
                Some(prefix) => prefixes.push(prefix),
                None => self.faults.push(Fault::new(
                    &format!("hostPaths[{index}]"),
                    "a directory of the node is an absolute path without `..`",
                )),
            }
        }
        prefixes
    }

    fn limits(&mut self, limits: &Limits) -> CompiledLimits {
        let resources = limits.resources.as_ref().map(|resources| {
            let amount = |(name, amount): (&String, &Amount)| {
                Some((name.clone(), self.amount(Some(amount), &format!("limits.resources.{name}"))?))
            };
            resources.iter().filter_map(amount).collect()
        });
        CompiledLimits {
            driver: self.pod_limits(&limits.driver, "limits.driver"),
            executor: self.pod_limits(&limits.executor, "limits.executor"),
            total_cores: self.amount(limits.total_cores.as_ref(), "limits.totalCores"),
            total_memory: self.amount(limits.total_memory.as_ref(), "limits.totalMemory"),
            storage: self.amount(limits.storage.as_ref(), "limits.storage"),
            empty_dir: self.amount(limits.empty_dir.as_ref(), "limits.emptyDir"),
            resources,
        }
    }

    fn pod_limits(&mut self, limits: &PodLimits, at: &str) -> CompiledPodLimits {
        CompiledPodLimits {
            cores: self.amount(limits.cores.as_ref(), &format!("{at}.cores")),
            memory: self.amount(limits.memory.as_ref(), &format!("{at}.memory")),
            ephemeral_storage: self.amount(limits.ephemeral_storage.as_ref(), &format!("{at}.ephemeralStorage")),
        }
    }

    fn amount(&mut self, amount: Option<&Amount>, at: &str) -> Option<Quantity> {
        let Amount(text) = amount?;
        let quantity = Quantity::parse(text).filter(|quantity| *quantity >= Quantity::ZERO);
        if quantity.is_none() {
            let reason = format!("`{text}` is not a quantity of Kubernetes, such as 64Gi, 500m or 8");
            self.faults.push(Fault::new(at, reason));
        }
        quantity
    }
}

impl Rules {
    /// Compiles a document.
    ///
    /// # Errors
    /// All faults of the document.
    pub(crate) fn compile(document: PolicyDocument, service_accounts: &[String]) -> Result<Self, Vec<Fault>> {
        let mut compiler = Compiler { faults: Vec::new() };
        let rules = compiler.rules(document, service_accounts);
        if compiler.faults.is_empty() { Ok(rules) } else { Err(compiler.faults) }
    }

    /// Returns whether pods must meet at least this level of the Pod Security Standards.
    pub(crate) fn requires(&self, level: PodSecurity) -> bool {
        self.document.pod_security >= level
    }

    pub(crate) fn forbids_inline_secrets(&self) -> bool {
        self.document.inline_secrets == InlineSecrets::Forbid
    }

    pub(crate) fn packages(&self) -> Packages {
        self.document.packages
    }
}
