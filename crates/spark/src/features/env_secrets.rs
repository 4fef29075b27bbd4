//! `EnvSecretsFeatureStep`: single values of Secrets as environment variables of the driver
//! (`spark.kubernetes.driver.secretKeyRef.<variable>=<secret>:<key>`).

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, SecretKeySelector};

use super::FeatureStep;
use crate::{
    driver::{DriverConf, SparkPod},
    refusal::Refusal,
};

const PREFIX: &str = "spark.kubernetes.driver.secretKeyRef.";

pub(super) struct EnvSecrets {
    /// The variables, sorted by name; Spark's order is that of a hash map.
    variables: Vec<EnvVar>,
}

impl EnvSecrets {
    pub(super) fn new(conf: &DriverConf<'_>) -> Result<Self, Refusal> {
        let references = conf.with_prefix(PREFIX);
        let variables = references.into_iter().map(|(name, reference)| variable(name, &reference));
        Ok(Self { variables: variables.collect::<Result<_, _>>()? })
    }
}

impl FeatureStep for EnvSecrets {
    fn configure_pod(&self, pod: &mut SparkPod) {
        self.variables.iter().cloned().for_each(|variable| pod.add_env(variable));
    }
}

fn variable(name: String, reference: &str) -> Result<EnvVar, Refusal> {
    // Java's `split` drops empty parts at the end: `secret:` has one part, `secret:key:` two.
    let parts: Vec<&str> = reference.trim_end_matches(':').split(':').collect();
    let [secret, key] = parts[..] else {
        let reason = "SecretKeyRef must be in the form name:key. The name is that of a Kubernetes Secret.";
        return Err(Refusal::property(&format!("{PREFIX}{name}"), reason));
    };
    let selector = SecretKeySelector { name: secret.to_owned(), key: key.to_owned(), optional: None };
    let source = EnvVarSource { secret_key_ref: Some(selector), ..Default::default() };
    Ok(EnvVar { name, value: None, value_from: Some(source) })
}
