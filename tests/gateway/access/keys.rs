//! API keys.

use serde_json::json;
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::access::world::{TWO_TENANTS, World, job};

#[sqlx::test]
async fn a_request_without_valid_credentials_is_answered_with_401_and_a_challenge(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let key = world.key(Role::Viewer, Some("red")).await;
    let last = if key.ends_with('0') { '1' } else { '0' };
    let misspelt = format!("{}{last}", &key[..key.len() - 1]);
    let other = world.key(Role::Viewer, Some("red")).await;
    // The id of one key with the secret of another.
    let mixed = format!("{}{}", &key[..20], &other[20..]);
    for (token, challenge, reason) in [
        (None, "Bearer realm=\"sparkgate\"", "send a token or an API key"),
        (Some("abc"), "error=\"invalid_token\"", "of no issuer that this gateway accepts"),
        (Some(misspelt.as_str()), "error=\"invalid_token\"", "checksum"),
        (Some(mixed.as_str()), "error=\"invalid_token\"", ""),
    ] {
        for path in ["/v1/submissions", "/v1/submissions/status/driver-20260102030405-0000", "/docs", "/"] {
            let answer = world.send(token, "GET", path, None).await;
            assert_eq!(answer.status, 401, "{path} {token:?}: {answer:?}");
            assert!(answer.headers["www-authenticate"].contains(challenge), "{answer:?}");
            assert!(answer.body.contains(reason), "{answer:?}");
            assert!(token.is_none_or(|token| !answer.body.contains(token)), "{answer:?}");
        }
    }
    let problem = world.send(None, "GET", "/v1/submissions", None).await;
    assert_eq!(
        (&problem.json()["code"], problem.headers["content-type"].as_str()),
        (&json!("unauthenticated"), "application/problem+json")
    );
    let spark = world.send(None, "POST", "/v1/submissions/create", Some(&job("red"))).await;
    assert_eq!(spark.json()["action"], "ErrorResponse");
}

#[sqlx::test]
async fn an_operator_creates_lists_and_revokes_the_keys_of_its_tenant(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let operator = world.key(Role::Operator, Some("red")).await;
    let body = json!({"name": "airflow", "tenant": "red", "role": "submitter", "expiresInSeconds": 3600});
    let created = world.send(Some(&operator), "POST", "/v1/tokens", Some(&body)).await;
    assert_eq!(created.status, 201, "{created:?}");
    let created = created.json();
    let (id, token) = (created["id"].as_str().unwrap(), created["token"].as_str().unwrap());
    let me = world.get(token, "/v1/me").await.json();
    assert_eq!(me["subject"], format!("key:{id}"));
    assert_eq!(
        me["tenants"],
        json!([{"name": "red", "role": "submitter", "namespaces": ["red", "red-batch"], "sparkVersions": ["4.3.0"], "defaultSparkVersion": "4.3.0"}])
    );
    assert_eq!(me["expiresAt"], created["expiresAt"]);
    world.submit(token, "red-batch").await;

    let listed = world.get(&operator, "/v1/tokens").await;
    assert!(
        listed.body.contains(id) && !listed.body.contains(token) && !listed.body.contains("\"token\""),
        "{listed:?}"
    );
    let blue = world.key(Role::Operator, Some("blue")).await;
    assert!(!world.get(&blue, "/v1/tokens").await.body.contains(id));
    let path = format!("/v1/tokens/{id}");
    assert_eq!(world.send(Some(&blue), "DELETE", &path, None).await.status, 404);
    assert_eq!(world.send(Some(&operator), "DELETE", &path, None).await.status, 204);
    assert_eq!(world.send(Some(&operator), "DELETE", &path, None).await.status, 404);
    // A replica may have remembered the key for some seconds.
    while world.get(token, "/v1/me").await.status == 200 {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert!(world.get(token, "/v1/me").await.body.contains("revoked"));
}

#[sqlx::test]
async fn a_caller_grants_at_most_its_own_rights(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let operator = world.key(Role::Operator, Some("red")).await;
    let admin = world.key(Role::Admin, None).await;
    for (key, tenant, role, status) in [
        (&operator, Some("red"), "operator", 201),
        (&operator, Some("red"), "admin", 403),
        (&operator, None, "viewer", 403),
        (&operator, Some("blue"), "viewer", 403),
        (&operator, Some("green"), "viewer", 403),
        (&admin, Some("blue"), "operator", 201),
        (&admin, Some("blue"), "admin", 400),
        (&admin, Some("green"), "viewer", 403),
        (&admin, None, "admin", 201),
        (&admin, None, "owner", 400),
    ] {
        let body = json!({"name": "new", "tenant": tenant, "role": role});
        let answer = world.send(Some(key), "POST", "/v1/tokens", Some(&body)).await;
        assert_eq!(answer.status, status, "{tenant:?} {role}: {answer:?}");
    }
    let body = json!({"name": "short", "tenant": "red", "role": "operator", "expiresInSeconds": 60});
    let short = world.send(Some(&operator), "POST", "/v1/tokens", Some(&body)).await.json();
    let forever = json!({"name": "long", "tenant": "red", "role": "viewer"});
    let answer = world.send(short["token"].as_str(), "POST", "/v1/tokens", Some(&forever)).await;
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[sqlx::test]
async fn an_expired_key_is_refused(pool: PgPool) {
    let world = World::new(pool.clone(), TWO_TENANTS).await;
    let key = world.key(Role::Viewer, Some("red")).await;
    sqlx::query("UPDATE api_keys SET expires_at = now() - interval '1 second'").execute(&pool).await.unwrap();
    assert_eq!(world.get(&key, "/v1/me").await.status, 401);
}

#[sqlx::test]
async fn the_database_has_no_key_in_plain_text(pool: PgPool) {
    let world = World::new(pool.clone(), TWO_TENANTS).await;
    let key = world.key(Role::Admin, None).await;
    world.submit(&key, "red").await;
    let secret = key.rsplit('_').next().unwrap();
    for table in ["api_keys", "submissions", "manifests", "submission_events", "audit"] {
        let query = format!("SELECT count(*) FROM {table} t WHERE t::text LIKE '%' || $1 || '%'");
        let found: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(query)).bind(secret).fetch_one(&pool).await.unwrap();
        assert_eq!(found, 0, "{table}");
    }
}
