//! Whether the cluster has the objects that enforce the boundaries of tenants.

use std::{collections::BTreeMap, io::Write, num::NonZeroU32};

use http::Request;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::DeleteParams;
use serde_json::Value;
use sparkgate::{
    cluster::Cluster,
    service::{AccessFile, Service, Settings, SparkSettings, Submitter},
    store::Store,
};
use sparkgate_admission::{GatewayAccount, objects};
use sqlx::PgPool;
use tempfile::NamedTempFile;

use crate::in_memory::settings;
use crate::world::{World, eventually};

/// Creates a gateway for a tenant that has the namespace.
async fn gateway(world: &World, file: &NamedTempFile) -> Service {
    let user = "tester".to_owned();
    let (version, defaults) = ("4.3.0".parse().unwrap(), BTreeMap::new());
    let spark = SparkSettings::new(version, defaults, Submitter::default(), user);
    let settings = Settings { kept_log: 0, ..settings(spark) };
    let access = AccessFile::open(file.path().to_owned(), settings).unwrap();
    let cluster = Cluster::new(world.client.clone(), std::slice::from_ref(&world.namespace));
    Service::new(Store::new(world.pool.clone()), cluster, access).await.unwrap()
}

/// Applies an object as an administrator.
async fn apply(world: &World, object: &Value) {
    let (group, plural) = match object["kind"].as_str().unwrap() {
        "Namespace" => ("api/v1", "namespaces"),
        "ServiceAccount" => ("api/v1", "serviceaccounts"),
        "NetworkPolicy" => ("apis/networking.k8s.io/v1", "networkpolicies"),
        "Role" => ("apis/rbac.authorization.k8s.io/v1", "roles"),
        "RoleBinding" => ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
        "ClusterRole" => ("apis/rbac.authorization.k8s.io/v1", "clusterroles"),
        "ClusterRoleBinding" => ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
        "ValidatingAdmissionPolicy" => ("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
        "ValidatingAdmissionPolicyBinding" => {
            ("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings")
        }
        other => panic!("{other}"),
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap();
    let path = format!("/{group}{namespace}/{plural}/{name}?fieldManager=test&force=true");
    let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
    world.admin.request_text(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap();
}

#[sqlx::test]
async fn what_the_cluster_lacks_to_enforce_boundaries_is_found(pool: PgPool) {
    let world = World::new(pool).await;
    let namespace = &world.namespace;
    let mut file = NamedTempFile::new().unwrap();
    // The tenant's name is part of the names of objects that all tests of this API server share.
    let text = format!(
        "authentication: {{}}\ntenants: {{{namespace}: {{namespaces: [{namespace}], serviceAccounts: [spark]}}}}\n"
    );
    file.write_all(text.as_bytes()).unwrap();
    let service = gateway(&world, &file).await;
    let findings = async || {
        service.boundaries.check().await;
        service.boundaries.findings()
    };
    let before = findings().await;
    let missing = |what: &str| before.iter().any(|finding| finding.contains(what));
    assert!(missing(&format!("Namespace {namespace} differs: metadata.labels")), "{before:?}");
    assert!(missing("the account lacks rights (") && missing("get roles.rbac.authorization.k8s.io"), "{before:?}");
    assert!(missing("get validatingadmissionpolicies.admissionregistration.k8s.io"), "{before:?}");

    let access = service.access.current();
    let all = objects(access.access(), &GatewayAccount::default(), NonZeroU32::MIN).unwrap();
    for object in &all {
        apply(&world, &object.manifest).await;
    }
    eventually(|| async {
        let findings = findings().await;
        if findings.is_empty() { Ok(()) } else { Err(findings) }
    })
    .await;

    world.api::<NetworkPolicy>().delete("sparkgate-spark", &DeleteParams::default()).await.unwrap();
    let after = findings().await;
    let expected = format!("NetworkPolicy {namespace}/sparkgate-spark is missing");
    assert!(after.len() == 1 && after[0].contains(&expected), "{after:?}");
}
