//! Properties by their classes. What a property does to a pod is judged there; here it counts who may set it.

use crate::{
    classes::{Class, class_of},
    judgement::Judgement,
    node::shortened,
};

const RULE: &str = "properties";
/// Where the gateway mounts credentials that it ships to the driver (Spark's `DriverKubernetesCredentialsFeatureStep`).
const MOUNTED_CREDENTIALS: &str = "/mnt/secrets/spark-kubernetes-credentials/";

pub(super) fn judge(judgement: &mut Judgement<'_>) {
    let judged = judgement.judged;
    let rules = judgement.rules;
    for (key, value) in judged.properties {
        let (key, value) = (key.as_str(), value.trim());
        let class = class_of(key);
        let is_default = judged.origins.contains_key(key);
        let allowed = is_default || rules.properties.allow.as_ref().is_some_and(|allow| allow.matches(key));
        if !is_default && rules.properties.deny.matches(key) {
            judgement.report_property(RULE, key, "the policy refuses this property");
            continue;
        }
        match class {
            Class::Free => {}
            Class::Ruled(rule) => {
                // Spark would replace it when the driver reads the property (`ConfigReader`).
                if value.contains("${") {
                    let message = "the driver would replace `${…}` by another value: write the value itself";
                    judgement.report_property(rule, key, message);
                }
            }
            Class::Operator if !allowed => {
                judgement.report_property(RULE, key, "only the operator's defaults may set this property");
            }
            Class::Unknown if !allowed => {
                let message = "no release of Spark that the policy knows has this property: check its spelling";
                judgement.report_property(RULE, key, message);
            }
            Class::Operator | Class::Unknown => {}
            Class::Forbidden(why) => judgement.report_property(RULE, key, why),
            Class::Credentials => {
                let shipped = value.starts_with(MOUNTED_CREDENTIALS);
                if !rules.document.credentials && !is_default && !shipped {
                    let message = "pods call the Kubernetes API as their service account, without other credentials";
                    judgement.report_property("credentials", key, message);
                }
            }
        }
        judge_value(judgement, key, value);
        super::inline_secrets::judge_property(judgement, key, value);
    }
}

/// Judges the values that no object shows.
fn judge_value(judgement: &mut Judgement<'_>, key: &str, value: &str) {
    match key {
        "spark.kubernetes.namespace" => {
            let mut objects = judgement.judged.objects.iter();
            let other = objects
                .find_map(|object| object["metadata"]["namespace"].as_str().filter(|namespace| *namespace != value));
            if let Some(other) = other {
                let message = format!("the driver's namespace is {}", shortened(other));
                judgement.report_property("structure", key, message);
            }
        }
        "spark.kubernetes.executor.podTemplateFile" if judgement.judged.executor_template.is_none() => {
            judgement.report_property("structure", key, "the executors' pod template was not given to the policy");
        }
        // The template's account takes precedence over it, and would hide it here.
        "spark.kubernetes.authenticate.executor.serviceAccountName" => {
            let accounts = &judgement.rules.service_accounts;
            if !accounts.is_empty() && !accounts.iter().any(|account| account == value) {
                let message = format!("it must be one of the tenant's accounts: {}", accounts.join(", "));
                judgement.report_property("serviceAccounts", key, message);
            }
        }
        _ => {}
    }
}
