//! Labels and annotations, and secrets in variables, arguments and annotations.

use sparkgate_policy::{
    IDENTITY_LABELS, InlineSecrets, MetadataKeys, PERMITTED_KEYS, Policy, SECRET_RULES, SecretPattern, SecretRules,
};

use super::{
    Rule,
    condition::{all_containers, and},
    kueue,
};
use crate::cel::{list, literal};

/// Labels that Spark sets.
const SPARKS_LABELS: [&str; 7] = [
    "spark-app-name",
    "spark-app-selector",
    "spark-exec-id",
    "spark-exec-inactive",
    "spark-exec-resourceprofile-id",
    "spark-role",
    "spark-version",
];
/// Annotations of Spark, and of the API server itself.
const OTHERS_ANNOTATIONS: [&str; 3] =
    ["controller.kubernetes.io/pod-deletion-cost", "kubernetes.io/limit-ranger", "spark.exit-exception"];
/// The annotation by which a pod joins a group of Volcano, which must be that of its application.
const GROUP: &str = "scheduling.k8s.io/group-name";
/// Keys below Kubernetes' own domains.
const RESERVED: &str = "(?i)^([^/]*[.])?(kubernetes[.]io|k8s[.]io)/";

/// Returns variables and rules.
pub(super) fn rules(policy: &Policy) -> (Vec<(&'static str, String)>, Vec<Rule>) {
    let changed = |field: &str| {
        format!(
            "(variables.isNewSparkPod ? object.metadata.?{field}.orValue({{}}).map(key, key) :\n\
             \x20 !variables.isChangedByDriver ? [] : object.metadata.?{field}.orValue({{}}).map(key, key).filter(key,\n\
             \x20   object.metadata.{field}[key] != oldObject.metadata.?{field}[?key].orValue('')))"
        )
    };
    let foreign =
        |field: &str, keys: MetadataKeys| format!("{}.filter(key, !({}))", changed(field), permitted(policy, keys));
    let mut variables = vec![
        ("foreignLabels", foreign("labels", MetadataKeys::Labels)),
        ("foreignAnnotations", foreign("annotations", MetadataKeys::Annotations)),
    ];
    let mut rules = vec![
        Rule::naming("the policy of the tenant doesn't permit these labels", "variables.foreignLabels"),
        Rule::naming("the policy of the tenant doesn't permit these annotations", "variables.foreignAnnotations"),
        Rule::for_new_pods(
            format!(
                "object.metadata.?annotations[?'{GROUP}'].orValue('').matches('^(spark-[0-9a-f]{{32}}-podgroup)?$')"
            ),
            "a Spark pod joins only the group of its own application",
        ),
    ];
    if policy.document().inline_secrets == InlineSecrets::Forbid {
        let (of_secrets, rule) = secrets(SecretPattern::applied());
        variables.extend(of_secrets);
        rules.push(rule);
    }
    (variables, rules)
}

/// Returns variables and the rule that a pod has no secret as plain text, by the rules of the gateway and an expression of the
/// operator.
fn secrets(operators: Option<&str>) -> (Vec<(&'static str, String)>, Rule) {
    let SecretRules { spark, names, plain_names, plain_values, values } = SECRET_RULES;
    let words = operators.map_or_else(|| spark.to_owned(), |own| format!("{spark}|(?-i:{own})"));
    let variables = vec![
        ("secretWords", literal(&words)),
        ("secretKeys", literal(names)),
        ("plainKeys", literal(plain_names)),
        ("plainValues", literal(plain_values)),
        ("secretValues", literal(values)),
    ];
    let is_secret = |name: &str, value: &str| {
        format!(
            "{value} != '' && ({name}.matches(variables.secretWords) || {value}.matches(variables.secretWords) ||\n\
             \x20   {value}.matches(variables.secretValues) || ({name}.matches(variables.secretKeys) &&\n\
             \x20   !{name}.matches(variables.plainKeys) && !{value}.matches(variables.plainValues)))"
        )
    };
    let variable = format!(
        "c.?env.orValue([]).all(e, e.?value.orValue('') == '' || e.name == 'HADOOP_TOKEN_FILE_LOCATION' ||\n\
         \x20   !({}))",
        is_secret("e.name", "e.value")
    );
    let argument = format!(
        "(c.?command.orValue([]) + c.?args.orValue([])).all(a, !a.matches(variables.secretValues) &&\n\
         \x20   (!a.contains('=') || !({})))",
        is_secret("a.substring(0, a.indexOf('='))", "a.substring(a.indexOf('=') + 1)")
    );
    let annotation = format!(
        "object.metadata.?annotations.orValue({{}}).all(key, key.startsWith('sparkgate.dev/') ||\n\
         \x20   !({}))",
        is_secret("key", "object.metadata.annotations[key]")
    );
    let conditions = [all_containers(&variable), all_containers(&argument), annotation];
    let message =
        "a variable, an argument or an annotation looks like a secret: put it into a Secret, and refer to that";
    (variables, Rule::for_new_pods(and(&conditions), message))
}

/// Returns the condition that labels and annotations of other metadata are permitted.
pub(in super::super) fn keys_are_permitted(policy: &Policy, metadata: &str) -> String {
    let of = |field: &str, keys: MetadataKeys| {
        format!("{metadata}.?{field}.orValue({{}}).all(key, {})", permitted(policy, keys))
    };
    format!("{} &&\n  {}", of("labels", MetadataKeys::Labels), of("annotations", MetadataKeys::Annotations))
}

/// Returns the condition that a `key` is permitted. The marks of the gateway are guarded by a policy of their own.
fn permitted(policy: &Policy, keys: MetadataKeys) -> String {
    let (allow, deny) = policy.metadata_keys(keys);
    let own = match keys {
        MetadataKeys::Labels => list(SPARKS_LABELS),
        MetadataKeys::Annotations => list(OTHERS_ANNOTATIONS.into_iter().chain([GROUP])),
    };
    let (domains, exact): (Vec<&str>, Vec<&str>) = PERMITTED_KEYS.iter().copied().partition(|key| key.ends_with('/'));
    let domains: Vec<String> = domains.iter().map(|domain| format!("key.startsWith({})", literal(domain))).collect();
    let mut conditions = vec![
        format!("(!key.matches({}) || key in {} || {})", literal(RESERVED), list(exact), domains.join(" || ")),
        format!("!key.matches({})", literal(deny)),
    ];
    match (keys, allow) {
        (_, Some(allow)) => conditions.push(format!("key.matches({})", literal(allow))),
        (MetadataKeys::Labels, None) => conditions.push(format!("!(key in {})", list(IDENTITY_LABELS))),
        (MetadataKeys::Annotations, None) => {}
    }
    let of_kueue = match keys {
        _ if !policy.uses_kueue() => String::new(),
        MetadataKeys::Labels => kueue::permitted_key(&kueue::LABELS, deny),
        MetadataKeys::Annotations => kueue::permitted_key(&kueue::ANNOTATIONS, deny),
    };
    format!("key.startsWith('sparkgate.dev/') || key in {own} ||{of_kueue}\n    ({})", conditions.join(" &&\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_of_the_operator_is_one_more_word() {
        let words = |operators| secrets(operators).0.into_iter().find(|(name, _)| *name == "secretWords").unwrap().1;
        assert_eq!(words(None), "'(?i)secret|password|token|access[.]?key'");
        assert_eq!(words(Some("^CORP_'")), r"'(?i)secret|password|token|access[.]?key|(?-i:^CORP_\')'");
    }
}
