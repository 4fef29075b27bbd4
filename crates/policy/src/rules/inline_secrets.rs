//! Secrets as plain text in properties, environment variables, arguments and annotations: what is hidden where it is shown.

use sparkgate_spark::{is_secret, redacted_argument};

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

pub(super) fn judge_pod(judgement: &mut Judgement<'_>, pod: &Node<'_>) {
    if !judgement.rules.forbids_inline_secrets() {
        return;
    }
    for (key, annotation) in pod.field("metadata").field("annotations").entries() {
        if looks_secret(key, annotation.text().unwrap_or_default()) {
            judgement.report(RULE, &annotation, INSTEAD);
        }
    }
    each_container(&pod.field("spec"), |container| {
        for list in ["command", "args"] {
            for argument in container.field(list).items() {
                if argument.text().is_some_and(|text| redacted_argument(text).is_some()) {
                    judgement.report(RULE, &argument, INSTEAD);
                }
            }
        }
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
