//! The gateway's rights: those of the deployment, and fewer.

use http::Request;
use k8s_openapi::api::{core::v1::Secret, rbac::v1::Role};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{json, value::to_raw_value};
use sparkgate::cluster::{Cluster, Error};
use sparkgate_testing::kube_apiserver::KubeApiserver;
use sqlx::PgPool;

use crate::world::{World, eventually};

const NAME: &str = "sparkgate";

#[sqlx::test]
async fn a_missing_right_is_named_before_a_launch_needs_it(pool: PgPool) {
    let world = World::new(pool).await;
    let cluster = Cluster::new(world.client.clone(), std::slice::from_ref(&world.namespace));
    let missing = async || {
        let missing = cluster.missing_rights(Some(&world.namespace)).await.unwrap();
        missing.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(missing().await, [""; 0]);

    let mut rules = world.api::<Role>().get(NAME).await.unwrap().rules.unwrap();
    for rule in &mut rules {
        rule.verbs.retain(|verb| verb != "patch");
        if let Some(resources) = &mut rule.resources {
            resources.retain(|resource| resource != "pods/log");
        }
    }
    rules.retain(|rule| rule.resources.as_ref().is_some_and(|resources| !resources.is_empty()));
    let without = Patch::Merge(json!({"rules": rules}));
    world.api::<Role>().patch(NAME, &PatchParams::default(), &without).await.unwrap();
    let expected = ["patch pods", "get pods/log"];
    eventually(|| async { (missing().await == expected).then_some(()).ok_or("not yet") }).await;
    let elsewhere = cluster.missing_rights(Some("default")).await.unwrap();
    assert!(elsewhere.len() > expected.len(), "the account has no rights there: {elsewhere:?}");
}

#[sqlx::test]
async fn secrets_are_created_by_an_account_that_may_not_read_them(pool: PgPool) {
    let world = World::new(pool).await;
    let cluster = Cluster::new(world.client.clone(), std::slice::from_ref(&world.namespace));
    let secret = to_raw_value(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keytab"}})).unwrap();
    let create = async |is_repeated| cluster.create_owned(&world.namespace, &secret, ("a", "b"), is_repeated).await;
    create(false).await.unwrap();
    // Its owner doesn't exist, so the garbage collector may delete it in between.
    let foreign = eventually(|| async {
        create(true).await.expect("an earlier try may have created it");
        create(false).await.err().ok_or("it didn't exist")
    });
    let foreign = foreign.await;
    assert!(matches!(&foreign, Error::Refused { code: 409, .. }), "{foreign:?}");
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(matches!(secrets.get("keytab").await, Err(kube::Error::Api(status)) if status.code == 403));
}

/// All these tests use the deployment's account.
#[tokio::test]
async fn the_account_of_the_tests_is_no_administrator() {
    let server = KubeApiserver::start().await;
    let error = server.gateway().await.request_text(Request::get("/api/v1/nodes").body(Vec::new()).unwrap()).await;
    assert!(matches!(error, Err(kube::Error::Api(status)) if status.code == 403));
}
