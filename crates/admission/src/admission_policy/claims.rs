//! The policy for the claims that a tenant's drivers create: Spark creates one for each volume `OnDemand` of an executor. Those that
//! the gateway creates are judged before.

use sparkgate_policy::{Names, Policy};

use super::{
    policy::{Concerned, Validation, policy_and_binding},
    tenant::{by_driver, metadata::keys_are_permitted, sizes::limit},
};
use crate::{cel::literal, gateway::GatewayAccount, object::Object, tenant::TenantRules};

const CLASS: &str = "object.spec.?storageClassName";
const ATTRIBUTES: &str = "object.spec.?volumeAttributesClassName.orValue('')";
/// Kubernetes' schema gives quantities no type.
const SIZE: &str = "quantity(dyn(object.spec).?resources.?requests[?'storage'].orValue('0')).asApproximateFloat()";

pub(super) fn name(tenant: &TenantRules<'_>, gateway: &GatewayAccount) -> String {
    format!("{}.claims.{}", gateway.namespace, tenant.name)
}

/// Returns the policy of a tenant and its binding.
pub(crate) fn claims(tenant: &TenantRules<'_>, gateway: &GatewayAccount) -> [Object; 2] {
    let purpose = format!(
        "The claims that drivers of tenant {} create: new volumes of a permitted class and size, which a pod owns. No claim of a driver\n\
         takes a volume that exists already: its content is another's.",
        tenant.name
    );
    let variables =
        [("byDriver", by_driver(tenant)), ("isNew", "variables.byDriver && request.operation == 'CREATE'".to_owned())];
    let concerned = Concerned { resource: "persistentvolumeclaims", operations: &["CREATE", "UPDATE"] };
    let validations = validations(&tenant.policy);
    policy_and_binding(&name(tenant, gateway), &purpose, concerned, &variables, &validations, &[tenant.name])
}

fn validations(policy: &Policy) -> Vec<Validation> {
    let of_new =
        |condition: &str, message: &str| Validation::new(format!("!variables.isNew || ({condition})"), message);
    if !policy.permits_volume("persistentVolumeClaim") {
        return vec![of_new("false", "the policy of the tenant permits no claims")];
    }
    let mut validations = vec![
        // Spark's is the driver, or the executor (`spark.kubernetes.driver.ownPersistentVolumeClaim`), whose uid no rule can know.
        of_new(
            "object.metadata.?ownerReferences.orValue([]).size() == 1 &&\n\
             \x20 object.metadata.ownerReferences.all(owner, owner.apiVersion == 'v1' && owner.kind == 'Pod') &&\n\
             \x20 object.metadata.?finalizers.orValue([]).all(name, name == 'kubernetes.io/pvc-protection')",
            "a claim of a driver is owned by one pod and has no finalizers",
        ),
        Validation::new(
            "!variables.byDriver || object.spec.?volumeName.orValue('') ==\n\
             \x20 (request.operation == 'CREATE' ? '' : oldObject.spec.?volumeName.orValue(''))",
            "a claim of a driver names no volume: a volume is selected by its class",
        ),
        of_new(
            "!has(object.spec.selector) && !has(object.spec.dataSource) && !has(object.spec.dataSourceRef)",
            "a claim of a driver selects and copies no volume: a volume is selected by its class",
        ),
        of_new(&class(policy), "the policy of the tenant doesn't permit the class of a claim"),
        of_new(
            &format!(
                "{} &&\n  {}",
                keys_are_permitted(policy, "object.metadata"),
                ["labels", "annotations"]
                    .map(|keys| format!(
                        "object.metadata.?{keys}.orValue({{}}).all(key, !key.startsWith('sparkgate.dev/'))"
                    ))
                    .join(" &&\n  "),
            ),
            "the policy of the tenant doesn't permit a label or annotation of a claim",
        ),
    ];
    if let Some(most) = &policy.document().limits.storage {
        validations.push(Validation::new(
            format!("!variables.byDriver || {SIZE} <= {}", limit(most)),
            &format!("the storage of an application's claims is at most {}", most.0),
        ));
    }
    validations
}

/// Returns the condition on the classes of a claim.
fn class(policy: &Policy) -> String {
    match policy.names(Names::StorageClasses).map(literal) {
        Some(classes) => format!(
            "{CLASS}.orValue('').matches({classes}) &&\n  ({ATTRIBUTES} == '' || {ATTRIBUTES}.matches({classes}))"
        ),
        // The class with an empty name is that of volumes that exist already.
        None => format!("{CLASS}.orValue('-') != ''"),
    }
}
