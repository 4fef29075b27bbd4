//! The access file changes while the gateway runs.

use std::{fs, sync::Arc};

use serde_json::json;
use sparkgate::{
    access::Role,
    service::{CleanUpSettings, Readiness},
};
use sparkgate_testing::wait::until;
use sqlx::PgPool;

use crate::access::world::{TWO_TENANTS, World};

#[sqlx::test]
async fn a_changed_file_applies_to_later_requests_and_a_wrong_one_changes_nothing(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    world.submit(&key, "red").await;
    let _guard = world.follow_access_file();

    fs::write(world.file.path(), "tenants:\n  red: {namespaces: red}\n").unwrap();
    let trouble = async || match world.service.health.readiness().await {
        Readiness::Accepting(reason) => Some(reason.to_string()),
        _ => None,
    };
    until("the fault of the file is reported", async || {
        trouble().await.is_some_and(|text| text.contains("access file"))
    })
    .await;
    assert!(trouble().await.unwrap().contains("line 2"), "{:?}", trouble().await);
    world.submit(&key, "red").await;

    fs::write(world.file.path(), "authentication: {}\ntenants:\n  red: {namespaces: [crimson]}\n").unwrap();
    until("the new file applies", async || world.get(&key, "/v1/me").await.body.contains("crimson")).await;
    assert!(!trouble().await.is_some_and(|text| text.contains("access file")));
    world.submit(&key, "crimson").await;
    // What was submitted before still belongs to the tenant.
    assert_eq!(world.get(&key, "/v1/submissions").await.json()["items"].as_array().unwrap().len(), 3);
}

/// As mounted secrets are, which Kubernetes updates one after the other.
#[sqlx::test]
async fn a_secret_that_comes_after_the_file_that_names_it_and_one_that_changes_are_read(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let access = &world.service.access;
    let secret = tempfile::tempdir().unwrap();
    let secret = secret.path().join("secret");
    let path = secret.display();
    let with_secret =
        format!("authentication: {{sparkJws: {{secretFile: {path}}}}}\ntenants:\n  red: {{namespaces: [crimson]}}\n");
    fs::write(world.file.path(), with_secret).unwrap();
    access.reload_if_changed();
    assert!(
        access.trouble().is_some_and(|trouble| trouble.contains(&*secret.to_string_lossy())),
        "{:?}",
        access.trouble()
    );

    fs::write(&secret, "a".repeat(44)).unwrap();
    access.reload_if_changed();
    assert_eq!((access.trouble(), access.tenant_of("crimson")), (None, "red".to_owned()));
    // The file of the secret is compared from here on.
    access.reload_if_changed();
    let before = access.current();
    access.reload_if_changed();
    assert!(Arc::ptr_eq(&before, &access.current()), "nothing has changed");
    fs::write(&secret, "b".repeat(44)).unwrap();
    access.reload_if_changed();
    assert!(!Arc::ptr_eq(&before, &access.current()), "the other secret is read");
}

/// A later tenant of the same name is another one.
#[sqlx::test]
async fn webhooks_and_keys_of_a_tenant_end_a_week_after_it(pool: PgPool) {
    let world = World::new(pool.clone(), TWO_TENANTS).await;
    let operator = world.key(Role::Operator, Some("red")).await;
    world.key(Role::Operator, Some("blue")).await;
    for url in ["https://hooks.example.org/a", "https://hooks.example.org/b"] {
        let created = world.send(Some(&operator), "POST", "/v1/webhooks", Some(&json!({"url": url}))).await;
        assert_eq!(created.status, 201, "{created:?}");
    }
    let clean_up = async || {
        let never = CleanUpSettings { finished_pod_ttl: None, retention: None };
        world.service.leadership.clean_up(&never).await.unwrap();
        let left =
            "SELECT (SELECT count(*) FROM webhooks), (SELECT count(*) FROM webhooks WHERE tenant_gone_at IS NULL),
                        (SELECT count(*) FROM api_keys WHERE revoked_at IS NULL)";
        sqlx::query_as::<_, (i64, i64, i64)>(left).fetch_one(&pool).await.unwrap()
    };
    let a_week_later = async || {
        for table in ["webhooks", "api_keys"] {
            let later = format!("UPDATE {table} SET tenant_gone_at = tenant_gone_at - interval '8 days'");
            sqlx::raw_sql(sqlx::AssertSqlSafe(later)).execute(&pool).await.unwrap();
        }
    };
    let change = |file: &str| {
        fs::write(world.file.path(), file).unwrap();
        world.service.access.reload_if_changed();
    };
    let without_red = "authentication: {}\ntenants: {blue: {namespaces: [blue]}}\n";
    assert_eq!(clean_up().await, (2, 2, 2));
    change(without_red);
    assert_eq!(clean_up().await, (2, 0, 2), "no change is sent");
    // It was a mistake.
    change(TWO_TENANTS);
    assert_eq!(clean_up().await, (2, 2, 2));
    a_week_later().await;
    assert_eq!(clean_up().await, (2, 2, 2));
    change(without_red);
    clean_up().await;
    a_week_later().await;
    assert_eq!(clean_up().await, (0, 0, 1));
    let revoked = "SELECT tenant, revoked_by FROM api_keys WHERE revoked_at IS NOT NULL";
    let revoked: (String, String) = sqlx::query_as(revoked).fetch_one(&pool).await.unwrap();
    assert_eq!(revoked, ("red".to_owned(), "gateway".to_owned()));
}
