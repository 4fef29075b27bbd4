//! Logins: in a browser, with the user's groups, and to their end.

use std::fs;

use reqwest::Method;
use serde_json::json;
use sqlx::PgPool;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::provider::{
    browser::Browser,
    keycloak::Keycloak,
    realm::Realm,
    world::{World, line, spark_job},
};

const SECONDS: u32 = 300;

/// Runs `sparkgate login`, and confirms or denies it as a user in a browser. Returns the exit code, what the browser shows in the
/// end, and what the command writes after its first line.
async fn login(world: &World, user: &str, consents: bool) -> (Option<i32>, String, String) {
    let mut child = world.command(&["login", "--no-browser"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = line(&mut lines).await;
    let url = first.split_whitespace().find(|word| word.starts_with("http")).unwrap_or_else(|| panic!("{first}"));
    let page = Browser::new().confirm(url, user, consents).await;
    let mut rest = String::new();
    lines.into_inner().read_to_string(&mut rest).await.unwrap();
    (child.wait().await.unwrap().code(), page, rest)
}

#[sqlx::test]
async fn a_user_logs_in_with_a_browser_submits_and_logs_out(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, SECONDS).await).await;
    let (code, page, said) = login(&world, "alice", true).await;
    assert!(code == Some(0) && said.starts_with("logged in to "), "{said}{page}");
    assert_eq!(world.realm.sessions("alice").await.len(), 1);

    let me = world.run(&["whoami"]).await;
    for part in
        ["Subject:     corp:alice", "corp:eng", "from the login of the context `prod`", "red     submitter  default"]
    {
        assert!(me.stdout.contains(part), "{part}: {me:?}");
    }
    let image = "spark.kubernetes.container.image=spark";
    let submitted = world.run(&["submit", "--conf", image, "--class", "a.B", "local:///a.jar"]).await;
    assert_eq!(submitted.code, Some(0), "{submitted:?}");
    let listed = world.run(&["list"]).await;
    assert!(listed.stdout.contains(submitted.stdout.trim_end()), "{listed:?}");

    let out = world.run(&["logout"]).await;
    assert_eq!(
        (out.code, out.stderr.as_str()),
        (Some(0), "logged out of the context `prod`\n"),
        "all tokens are revoked"
    );
    assert!(world.realm.sessions("alice").await.is_empty());
    let listed = world.run(&["list"]).await;
    assert!(listed.code == Some(1) && listed.stderr.contains("sparkgate login"), "{listed:?}");
}

#[sqlx::test]
async fn a_login_that_is_denied_in_the_browser_stores_nothing(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, SECONDS).await).await;
    let (code, page, said) = login(&world, "alice", false).await;
    assert!(code == Some(1) && said.contains("the login was denied"), "{said}{page}");
    assert!(!world.credentials().exists());
}

#[sqlx::test]
async fn the_groups_of_a_token_give_its_roles_on_both_protocols(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, SECONDS).await).await;
    let (alice, bob) = (world.realm.token("alice").await, world.realm.token("bob").await);
    let me = world.get(&alice, "/v1/me").await.body;
    assert_eq!(
        (&me["subject"], &me["groups"], &me["tenants"][0]["role"]),
        (&json!("corp:alice"), &json!(["corp:eng"]), &json!("submitter"))
    );
    assert_eq!(world.get(&bob, "/v1/me").await.body["tenants"], json!([]));

    let of_api = world.submit(&alice).await;
    let created = world.send(&alice, Method::POST, "/v1/submissions/create", Some(&spark_job())).await;
    assert_eq!((created.status, &created.body["success"]), (200, &json!(true)), "{created:?}");
    let of_spark = created.body["submissionId"].as_str().unwrap().to_owned();
    for id in [&of_api, &of_spark] {
        let seen = world.get(&alice, &format!("/v1/submissions/{id}")).await.body;
        assert_eq!((&seen["tenant"], &seen["principal"]), (&json!("red"), &json!("corp:alice")));
        assert_eq!(world.get(&alice, &format!("/v1/submissions/status/{id}")).await.body["success"], true);
        assert_eq!(world.get(&bob, &format!("/v1/submissions/{id}")).await.status, 404);
        assert_eq!(world.get(&bob, &format!("/v1/submissions/status/{id}")).await.body["success"], false);
    }
    let refused = world.send(&bob, Method::POST, "/v1/submissions/create", Some(&spark_job())).await;
    assert_eq!(refused.status, 403, "{refused:?}");

    // An operator may revoke keys of the tenant, a submitter may not. A token keeps the groups that it was issued with.
    assert_eq!(world.get(&alice, "/v1/tokens").await.status, 403);
    world.realm.move_user("alice", "eng", "ops").await;
    let promoted = world.realm.token("alice").await;
    assert_eq!(world.get(&promoted, "/v1/tokens").await.status, 200);
    assert_eq!(world.get(&alice, "/v1/tokens").await.status, 403);
}

#[sqlx::test]
async fn a_login_whose_session_was_revoked_ends_with_advice(pool: PgPool) {
    // Each command renews a token that ends so soon.
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, 20).await).await;
    world.log_in("alice").await;
    let before = fs::read_to_string(world.credentials()).unwrap();
    let me = world.run(&["whoami"]).await;
    assert!(me.code == Some(0) && me.stdout.contains("corp:alice"), "{me:?}");
    assert_ne!(fs::read_to_string(world.credentials()).unwrap(), before, "the token was renewed");
    world.realm.revoke("alice").await;
    let me = world.run(&["whoami"]).await;
    assert_eq!((me.code, me.stdout.as_str()), (Some(1), ""), "{me:?}");
    for part in ["the login of the context `prod` has ended", "invalid_grant", "run `sparkgate login --context prod`"] {
        assert!(me.stderr.contains(part), "{part}: {me:?}");
    }
}
