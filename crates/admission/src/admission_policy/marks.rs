//! The policy that guards the marks of the gateway: the role of drivers, and what is below `sparkgate.dev/`.

use super::policy::{Concerned, LABELS, OWN_EXECUTOR, REQUESTING_POD, Validation, policy_and_binding};
use crate::{cel::literal, gateway::GatewayAccount, object::Object, tenant::TenantRules};

/// The labels that a driver gives its executors, as the properties of the gateway tell it.
const EXECUTOR_LABELS: &str = "['sparkgate.dev/submission-id', 'sparkgate.dev/attempt', 'sparkgate.dev/instance']";

pub(super) fn name(gateway: &GatewayAccount) -> String {
    format!("{}.marks", gateway.namespace)
}

/// Returns the policy and its binding for the namespaces of all tenants.
pub(crate) fn marks(tenants: &[TenantRules<'_>], gateway: &GatewayAccount) -> [Object; 2] {
    let purpose = "Only the gateway creates drivers, and only it sets or changes labels, annotations and finalizers below sparkgate.dev/:\n\
                   by these it knows its pods. A driver gives its executors the labels with which it was created.\n\
                   Kubelets, the scheduler and controllers don't change these marks, so they need no exception.";
    let tenants: Vec<&str> = tenants.iter().map(|tenant| tenant.name).collect();
    let concerned = Concerned { resource: "pods", operations: &["CREATE", "UPDATE"] };
    policy_and_binding(&name(gateway), purpose, concerned, &variables(gateway), &validations(), &tenants)
}

fn variables(gateway: &GatewayAccount) -> Vec<(&'static str, String)> {
    let old = |field: &str, none: &str| {
        format!("request.operation == 'CREATE' ? {none} : oldObject.metadata.?{field}.orValue({none})")
    };
    let changed_keys = |new: &str, old: &str| {
        format!(
            "(variables.{new}.map(key, key) + variables.{old}.filter(key, !(key in variables.{new}))).filter(key,\n\
             \x20 key.startsWith('sparkgate.dev/') && variables.{new}[?key] != variables.{old}[?key])"
        )
    };
    let text = |(name, expression): (&'static str, &str)| (name, expression.to_owned());
    vec![
        ("isGateway", format!("request.userInfo.username == {}", literal(&gateway.username()))),
        text(REQUESTING_POD),
        text(LABELS),
        text(OWN_EXECUTOR),
        ("oldLabels", old("labels", "{}")),
        ("annotations", "object.metadata.?annotations.orValue({})".to_owned()),
        ("oldAnnotations", old("annotations", "{}")),
        ("finalizers", "object.metadata.?finalizers.orValue([])".to_owned()),
        ("oldFinalizers", old("finalizers", "[]")),
        ("changedLabels", changed_keys("labels", "oldLabels")),
        ("changedAnnotations", changed_keys("annotations", "oldAnnotations")),
        (
            "changedFinalizers",
            "(variables.finalizers + variables.oldFinalizers).filter(name, name.startsWith('sparkgate.dev/') &&\n\
             \x20 (name in variables.finalizers) != (name in variables.oldFinalizers))"
                .to_owned(),
        ),
    ]
}

fn validations() -> Vec<Validation> {
    vec![
        Validation::new(
            "variables.isGateway || request.operation != 'CREATE' || variables.labels[?'spark-role'].orValue('') != 'driver'",
            "only the gateway creates pods with the label spark-role=driver: submit the application to it",
        ),
        Validation::new(
            "variables.isGateway || request.operation != 'UPDATE' ||\n\
             ['spark-role', 'spark-app-selector'].all(key, variables.labels[?key] == variables.oldLabels[?key])",
            "only the gateway changes the labels spark-role and spark-app-selector",
        ),
        Validation::naming(
            format!(
                "variables.isGateway || variables.changedLabels.size() == 0 ||\n\
                 (request.operation == 'CREATE' && variables.isOwnExecutor &&\n\
                 \x20 variables.changedLabels.all(key, key in {EXECUTOR_LABELS}))"
            ),
            "only the gateway sets these labels, and a driver on executors that it owns",
            "variables.changedLabels",
        ),
        Validation::naming(
            "variables.isGateway || variables.changedAnnotations.size() == 0",
            "only the gateway sets these annotations",
            "variables.changedAnnotations",
        ),
        Validation::naming(
            "variables.isGateway || variables.changedFinalizers.size() == 0",
            "only the gateway sets and removes these finalizers",
            "variables.changedFinalizers",
        ),
    ]
}
