//! `DriverKubernetesCredentialsFeatureStep`: as whom the driver talks to the API server.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{Secret, SecretVolumeSource, Volume, VolumeMount},
};

use super::{FeatureStep, object_meta};
use crate::spark::{
    Refusal,
    driver::{DriverConf, Object, SparkPod},
};

const PREFIX: &str = "spark.kubernetes.authenticate.driver";
/// Files of the submitter that Spark would read. A path in a request is the client's, never the gateway's.
const FILES: [&str; 3] = ["caCertFile", "clientKeyFile", "clientCertFile"];
const VOLUME: &str = "kubernetes-credentials";
const MOUNT_PATH: &str = "/mnt/secrets/spark-kubernetes-credentials";
const TOKEN_KEY: &str = "oauth-token";
const REDACTED: &str = "<present_but_redacted>";

pub(super) struct DriverKubernetesCredentials<'a> {
    conf: &'a DriverConf<'a>,
    oauth_token: Option<&'a str>,
}

impl<'a> DriverKubernetesCredentials<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Result<Self, Refusal> {
        for file in FILES {
            let key = format!("{PREFIX}.{file}");
            if conf.contains(&key) {
                let reason = format!(
                    "A file of the submitter can't be read from here. Mount it into the driver from a Secret and name \
                     its place there by {PREFIX}.mounted.{file}, or use a service account."
                );
                return Err(Refusal::property(&key, reason));
            }
        }
        Ok(Self { conf, oauth_token: conf.get("spark.kubernetes.authenticate.driver.oauthToken") })
    }

    fn secret_name(&self) -> String {
        format!("{}-kubernetes-credentials", self.conf.names.resource_prefix)
    }
}

impl FeatureStep for DriverKubernetesCredentials<'_> {
    fn configure_pod(&self, pod: &mut SparkPod) {
        if self.oauth_token.is_none() {
            // Credentials of its own take the place of a service account, so this is the other branch.
            if let Some(account) = self.conf.get("spark.kubernetes.authenticate.driver.serviceAccountName") {
                pod.spec().service_account = Some(account.to_owned());
                pod.spec().service_account_name = Some(account.to_owned());
            }
            return;
        }
        let source = SecretVolumeSource { secret_name: Some(self.secret_name()), ..Default::default() };
        let volume = Volume { name: VOLUME.to_owned(), secret: Some(source), ..Default::default() };
        let mount = VolumeMount { name: VOLUME.to_owned(), mount_path: MOUNT_PATH.to_owned(), ..Default::default() };
        pod.mount(volume, mount);
    }

    fn additional_properties(&self) -> Vec<(String, String)> {
        let tokens = self.conf.iter().filter(|(key, _)| key.ends_with("oauthToken"));
        let mut properties: Vec<_> = tokens.map(|(key, _)| (key.to_owned(), REDACTED.to_owned())).collect();
        let mounted = format!("{PREFIX}.mounted.oauthTokenFile");
        if self.oauth_token.is_some() && !self.conf.contains(&mounted) {
            properties.push((mounted, format!("{MOUNT_PATH}/{TOKEN_KEY}")));
        }
        properties
    }

    fn additional_resources(&self) -> Vec<Object> {
        let secret = |token: &str| Secret {
            metadata: object_meta(self.conf, &self.secret_name()),
            data: Some(BTreeMap::from([(TOKEN_KEY.to_owned(), ByteString(token.as_bytes().to_vec()))])),
            immutable: Some(true),
            ..Default::default()
        };
        self.oauth_token.map(|token| Object::Secret(secret(token))).into_iter().collect()
    }
}
