//! `DriverKubernetesCredentialsFeatureStep`: the credentials with which the driver calls the API server.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};

use super::{FeatureStep, mounted, object_meta};
use crate::{
    driver::{DriverConf, Object, SparkPod},
    refusal::Refusal,
};

const PREFIX: &str = "spark.kubernetes.authenticate.driver";
const TOKEN: &str = "spark.kubernetes.authenticate.driver.oauthToken";
/// The token of Spark's own submission client. The gateway has its own client, but Spark's check remains.
const SUBMISSION_TOKEN: &str = "spark.kubernetes.authenticate.submission.oauthToken";
const VOLUME: &str = "kubernetes-credentials";
const MOUNT_PATH: &str = "/mnt/secrets/spark-kubernetes-credentials";
const REDACTED: &str = "<present_but_redacted>";

/// A file of the submitter that becomes an entry of the driver's Secret.
struct CredentialFile {
    /// The last segment of its property.
    property: &'static str,
    /// Its key in the Secret, and its name in the mounted directory.
    entry: &'static str,
    /// Its name in Spark's messages.
    title: &'static str,
}

const FILES: [CredentialFile; 3] = [
    CredentialFile { property: "caCertFile", entry: "ca-cert", title: "Driver CA cert file" },
    CredentialFile { property: "clientKeyFile", entry: "client-key", title: "Driver client key file" },
    CredentialFile { property: "clientCertFile", entry: "client-cert", title: "Driver client cert file" },
];

pub(super) struct DriverKubernetesCredentials<'a> {
    conf: &'a DriverConf<'a>,
    /// The Secret's data. If it is empty, no Secret is created.
    data: BTreeMap<String, ByteString>,
    /// Properties with the paths of the mounted files, unless the user has set them.
    mounted: Vec<(String, String)>,
}

impl<'a> DriverKubernetesCredentials<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Result<Self, Refusal> {
        refuse_two_tokens(conf)?;
        let mut step = Self { conf, data: BTreeMap::new(), mounted: Vec::new() };
        if let Some(token) = conf.get(TOKEN) {
            step.add("oauthTokenFile", "oauth-token", ByteString(token.as_bytes().to_vec()));
        }
        for file in &FILES {
            if let Some(content) = content(conf, file)? {
                step.add(file.property, file.entry, content.clone());
            }
        }
        Ok(step)
    }

    fn add(&mut self, property: &str, entry: &str, content: ByteString) {
        self.data.insert(entry.to_owned(), content);
        let key = format!("{PREFIX}.mounted.{property}");
        if !self.conf.contains(&key) {
            self.mounted.push((key, format!("{MOUNT_PATH}/{entry}")));
        }
    }

    fn secret_name(&self) -> String {
        format!("{}-kubernetes-credentials", self.conf.names.resource_prefix)
    }
}

impl FeatureStep for DriverKubernetesCredentials<'_> {
    fn configure_pod(&self, pod: &mut SparkPod) {
        if self.data.is_empty() {
            // Only here: the driver's own credentials take the place of a service account.
            if let Some(account) = self.conf.get("spark.kubernetes.authenticate.driver.serviceAccountName") {
                pod.spec().service_account = Some(account.to_owned());
                pod.spec().service_account_name = Some(account.to_owned());
            }
            return;
        }
        pod.mount(mounted::secret(VOLUME, self.secret_name()), mounted::mount(VOLUME, MOUNT_PATH));
    }

    fn additional_properties(&self) -> Vec<(String, String)> {
        let tokens = self.conf.iter().filter(|(key, _)| key.ends_with("oauthToken"));
        let mut properties: Vec<_> = tokens.map(|(key, _)| (key.to_owned(), REDACTED.to_owned())).collect();
        properties.extend(self.mounted.iter().cloned());
        properties
    }

    fn additional_resources(&self) -> Vec<Object> {
        if self.data.is_empty() {
            return Vec::new();
        }
        vec![Object::Secret(Secret {
            metadata: object_meta(self.conf, &self.secret_name()),
            data: Some(self.data.clone()),
            immutable: Some(true),
            ..Default::default()
        })]
    }
}

fn content<'a>(conf: &DriverConf<'a>, file: &CredentialFile) -> Result<Option<&'a ByteString>, Refusal> {
    let key = format!("{PREFIX}.{}", file.property);
    let instead = format!(
        "mount the file into the driver from a Secret, and name its place there by {PREFIX}.mounted.{}",
        file.property
    );
    let found = conf.submitter_file(&key, &instead).map_err(|mut refusal| {
        let path = conf.get(&key).unwrap_or_default();
        refusal.reason =
            format!("{} provided at {path} does not exist or is not a file. {}", file.title, refusal.reason);
        refusal
    })?;
    Ok(found.map(|(_, content)| content))
}

fn refuse_two_tokens(conf: &DriverConf<'_>) -> Result<(), Refusal> {
    let file = format!("{SUBMISSION_TOKEN}File");
    if !conf.contains(SUBMISSION_TOKEN) || !conf.contains(&file) {
        return Ok(());
    }
    let reason = format!("Cannot specify OAuth token through both a file {file} and a value {SUBMISSION_TOKEN}.");
    Err(Refusal::property(&file, reason))
}
