//! Secrets as plain text in properties and environment variables.

use sparkgate_spark::is_secret;

use super::each_container;
use crate::{judgement::Judgement, node::Node};

const RULE: &str = "inlineSecrets";
const INSTEAD: &str = "it looks like a secret: put it into a Secret, and refer to that";

/// Families whose keys contain such a word and whose values are names or paths.
const REFERENCES: [&str; 12] = [
    "spark.kubernetes.authenticate.driver.mounted.",
    "spark.kubernetes.authenticate.driver.oauthTokenFile",
    "spark.kubernetes.authenticate.submission.oauthTokenFile",
    "spark.kubernetes.container.image.pullSecrets",
    "spark.kubernetes.driver.secretKeyRef.",
    "spark.kubernetes.driver.secrets.",
    "spark.kubernetes.driver.volumes.",
    "spark.kubernetes.executor.secretKeyRef.",
    "spark.kubernetes.executor.secrets.",
    "spark.kubernetes.executor.volumes.",
    "spark.kubernetes.kerberos.tokenSecret.",
    "spark.redaction.",
];
/// The variable in which Spark passes the path of a mounted Secret (`KerberosConfDriverFeatureStep`).
const TOKEN_FILE: &str = "HADOOP_TOKEN_FILE_LOCATION";
/// The value by which Spark replaces tokens that it ships in a Secret.
const REDACTED: &str = "<present_but_redacted>";

/// Returns whether key or value look like a secret. An empty value holds none.
fn looks_secret(key: &str, value: &str) -> bool {
    !value.is_empty() && value != REDACTED && is_secret(key, value)
}

pub(super) fn judge_pod(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    if !judgement.rules.forbids_inline_secrets() {
        return;
    }
    each_container(spec, |container| {
        for variable in container.field("env").items() {
            let name = variable.text_of("name");
            if name != TOKEN_FILE && looks_secret(name, variable.text_of("value")) {
                judgement.report(RULE, &variable.field("value"), INSTEAD);
            }
        }
    });
}

/// Judges a property.
pub(super) fn judge_property(judgement: &mut Judgement<'_>, key: &str, value: &str) {
    if judgement.rules.forbids_inline_secrets()
        && !REFERENCES.iter().any(|family| key.starts_with(family))
        && looks_secret(key, value)
    {
        judgement.report_property(RULE, key, INSTEAD);
    }
}
