//! What a pod may refer to: Secrets, `ConfigMap`s, claims, drivers and servers of volumes, classes of storage.

use sparkgate_policy::{Names, PROJECTED_SOURCES, Policy};

use super::{
    Rule,
    condition::{all_containers, all_projections, all_volumes, and, names},
    metadata::keys_are_permitted,
};
use crate::cel::literal;

/// Names that the gateway and Spark generate for the objects of one application: they end with a unique id and a suffix. Whose
/// application it is, no expression can know.
const SECRETS: &str = "(?:[a-z0-9-]*-)?[0-9a-f]{14,16}-(?:kubernetes-credentials|kerberos-keytab|delegation-tokens)|\
                       spark-drv-[0-9a-f]+-connect-token";
const CONFIG_MAPS: &str = "spark-(?:drv|exec)-[0-9a-f]+-conf-map|\
                           (?:[a-z0-9-]*-)?[0-9a-f]{14,16}-(?:driver-podspec-conf-map|hadoop-config|krb5-file)";
const CLAIMS: &str = ".*-(?:driver|exec-[0-9]+)-pvc-[0-9]+.*";

/// Types of volumes whose field `secretRef` names a Secret.
const WITH_SECRET: [&str; 7] = ["cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"];

/// Returns variables and rules.
pub(super) fn rules(policy: &Policy) -> (Vec<(&'static str, String)>, Vec<Rule>) {
    let (mut variables, mut rules) = (Vec::new(), Vec::new());
    let permits = |kind: &str| policy.forbidden_volumes().all(|forbidden| forbidden != kind);
    for (list, variable, generated, conditions, message) in [
        (
            Names::Secrets,
            "secretNames",
            SECRETS,
            secrets(&permits),
            "the policy of the tenant doesn't permit the name of a Secret",
        ),
        (
            Names::ConfigMaps,
            "configMapNames",
            CONFIG_MAPS,
            config_maps(),
            "the policy of the tenant doesn't permit the name of a ConfigMap",
        ),
        (
            Names::Claims,
            "claimNames",
            CLAIMS,
            vec![all_volumes("v.?persistentVolumeClaim.?claimName.orValue('').matches(variables.claimNames)")],
            "the policy of the tenant doesn't permit the name of a PersistentVolumeClaim",
        ),
    ] {
        if let Some(expression) = names(policy, list, Some(generated)) {
            variables.push((variable, expression));
            rules.push(Rule::for_new_pods(and(&conditions), message));
        }
    }
    if let Some(drivers) = names(policy, Names::CsiDrivers, None) {
        let of = |kind: &str| all_volumes(&format!("v.?{kind}.?driver.orValue('').matches({drivers})"));
        let kinds = ["csi", "flexVolume"].into_iter().filter(|kind| permits(kind));
        let conditions: Vec<String> = kinds.map(of).collect();
        if !conditions.is_empty() {
            rules.push(Rule::for_new_pods(
                and(&conditions),
                "the policy of the tenant doesn't permit the driver of a volume",
            ));
        }
    }
    if let Some(servers) = names(policy, Names::NfsServers, None).filter(|_| permits("nfs")) {
        let condition = all_volumes(&format!("v.?nfs.?server.orValue('').matches({servers})"));
        rules
            .push(Rule::for_new_pods(condition, "the policy of the tenant doesn't permit the server of an NFS volume"));
    }
    if permits("ephemeral") {
        rules.extend(ephemeral(policy));
    }
    if permits("projected") {
        rules.extend(projected(policy));
    }
    (variables, rules)
}

fn secrets(permits: &dyn Fn(&str) -> bool) -> Vec<String> {
    let permitted = |name: &str| format!("{name}.orValue('').matches(variables.secretNames)");
    let mut conditions = vec![
        all_containers(&format!("c.?env.orValue([]).all(e, {})", permitted("e.?valueFrom.?secretKeyRef.?name"))),
        all_containers(&format!("c.?envFrom.orValue([]).all(e, {})", permitted("e.?secretRef.?name"))),
        format!("object.spec.?imagePullSecrets.orValue([]).all(s, {})", permitted("s.?name")),
        all_volumes(&permitted("v.?secret.?secretName")),
        all_projections(&permitted("s.?secret.?name")),
    ];
    let others = [("azureFile", "secretName"), ("csi", "nodePublishSecretRef.?name")].into_iter();
    let others = others.chain(WITH_SECRET.map(|kind| (kind, "secretRef.?name")));
    let others = others.filter(|(kind, _)| permits(kind));
    conditions.extend(others.map(|(kind, field)| all_volumes(&permitted(&format!("v.?{kind}.?{field}")))));
    conditions
}

fn config_maps() -> Vec<String> {
    let permitted = |name: &str| format!("{name}.orValue('').matches(variables.configMapNames)");
    vec![
        all_containers(&format!("c.?env.orValue([]).all(e, {})", permitted("e.?valueFrom.?configMapKeyRef.?name"))),
        all_containers(&format!("c.?envFrom.orValue([]).all(e, {})", permitted("e.?configMapRef.?name"))),
        all_volumes(&permitted("v.?configMap.?name")),
        all_projections(&permitted("s.?configMap.?name")),
    ]
}

/// Returns the rules for claims that a pod creates for itself.
fn ephemeral(policy: &Policy) -> Vec<Rule> {
    const TEMPLATE: &str = "v.ephemeral.volumeClaimTemplate";
    let of_each = |condition: &str| all_volumes(&format!("!has(v.ephemeral) || ({condition})"));
    let mut rules = Vec::new();
    let class = format!("{TEMPLATE}.spec.?storageClassName");
    let condition = match policy.names(Names::StorageClasses).map(literal) {
        Some(classes) => {
            let attributes = format!("{TEMPLATE}.spec.?volumeAttributesClassName.orValue('')");
            format!("{class}.orValue('').matches({classes}) && ({attributes} == '' || {attributes}.matches({classes}))")
        }
        // The class with an empty name is that of volumes that exist already.
        None => format!("{class}.orValue('-') != ''"),
    };
    rules
        .push(Rule::for_new_pods(of_each(&condition), "the policy of the tenant doesn't permit the class of a volume"));
    let source = |field: &str| {
        let claims = names(policy, Names::Claims, None);
        let named =
            claims.map(|claims| format!(" && {TEMPLATE}.spec.{field}.name.matches({claims})")).unwrap_or_default();
        format!(
            "(!has({TEMPLATE}.spec.{field}) || ({TEMPLATE}.spec.{field}.kind == 'PersistentVolumeClaim' &&\n\
             \x20   {TEMPLATE}.spec.{field}.?apiGroup.orValue('') == ''{named}))"
        )
    };
    let condition = format!(
        "!has({TEMPLATE}.spec.selector) && {TEMPLATE}.spec.?volumeName.orValue('') == '' &&\n  {} &&\n  {} &&\n\
         \x20 {TEMPLATE}.spec.?dataSourceRef.?namespace.orValue('') == ''",
        source("dataSource"),
        source("dataSourceRef"),
    );
    rules.push(Rule::for_new_pods(
        of_each(&condition),
        "an ephemeral volume is selected by its class, or copies a permitted claim",
    ));
    let condition = of_each(&keys_are_permitted(policy, &format!("{TEMPLATE}.?metadata")));
    rules.push(Rule::for_new_pods(
        condition,
        "the policy of the tenant doesn't permit a label or annotation of an ephemeral volume",
    ));
    rules
}

/// Returns the rules for projected volumes, and the tokens in them.
fn projected(policy: &Policy) -> Vec<Rule> {
    let mut rules = Vec::new();
    let permitted = policy.projected_sources();
    let forbidden = PROJECTED_SOURCES.iter().filter(|source| !permitted.iter().any(|own| own == *source));
    let forbidden: Vec<String> = forbidden.map(|source| format!("!has(s.{source})")).collect();
    if !forbidden.is_empty() {
        let condition = all_projections(&forbidden.join(" && "));
        rules.push(Rule::for_new_pods(
            condition,
            "the policy of the tenant doesn't permit the source of a projected volume",
        ));
    }
    let mut condition = names(policy, Names::Audiences, None)
        .map(|audiences| format!("s.?serviceAccountToken.?audience.orValue('').matches({audiences})"))
        .into_iter()
        .collect::<Vec<_>>();
    if !policy.document().service_account_tokens.automount {
        condition.push("(!has(s.serviceAccountToken) || s.serviceAccountToken.?audience.orValue('') != '')".to_owned());
    }
    let condition = all_projections(&condition.join(" && "));
    rules.push(Rule::for_new_pods(condition, "the policy of the tenant doesn't permit the audience of a token"));
    rules
}
