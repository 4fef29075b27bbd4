//! What a caller sees of usage: that of its tenants, with their prices.

use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    service::{Price, PriceSettings},
};
use sqlx::PgPool;

use crate::access::world::World;

const FILE: &str = "
authentication: {}
tenants:
  red: {namespaces: [red], prices: {coreHour: 2, gibHour: 0.5}}
  blue: {namespaces: [blue]}
limits: {writes: 100000/s, reads: 100000/s}
";

#[sqlx::test]
async fn usage_of_other_tenants_is_not_counted_and_each_has_its_prices(pool: PgPool) {
    let mut world = World::new(pool.clone(), FILE).await;
    let price = Price { core_hour: "1".to_owned(), gib_hour: "0".to_owned() };
    let prices = PriceSettings { price: Some(price), currency: Some("EUR".to_owned()) };
    world.configure(|setup| setup.prices = prices).await;
    let (red, blue) = (world.key(Role::Submitter, Some("red")).await, world.key(Role::Viewer, Some("blue")).await);
    let admin = world.key(Role::Admin, None).await;
    let ours = world.submit(&red, "red").await;
    let theirs = world.submit(&admin, "blue").await;
    sqlx::query(
        "UPDATE submissions SET state = 'FINISHED', created_at = '2026-03-01T09:00:00Z', pod_uid = 'u',
             pod_since = '2026-03-01T10:00:00Z', pod_ended_at = '2026-03-01T11:00:00Z', finished_at = '2026-03-01T11:00:01Z',
             pod_millicores = 1000, pod_memory_bytes = 1073741824",
    )
    .execute(&pool)
    .await
    .unwrap();
    sqlx::query("UPDATE usage_settled SET until = '2026-01-01Z'").execute(&pool).await.unwrap();
    let report = async |key: &str| {
        let path = "/v1/usage?since=2026-03-01&until=2026-03-02&groupBy=tenant";
        world.get(key, path).await.json()
    };
    let costs = |report: &Value| {
        let cost = |item: &Value| (item["group"]["tenant"].as_str().unwrap().to_owned(), item["cost"].clone());
        report["items"].as_array().unwrap().iter().map(cost).collect::<Vec<_>>()
    };
    let money = |amount: Value| json!({"amount": amount, "currency": "EUR"});
    assert_eq!(costs(&report(&red).await), [("red".to_owned(), money(json!(2.5)))]);
    assert_eq!(costs(&report(&blue).await), [("blue".to_owned(), money(json!(1)))]);
    let whole = report(&admin).await;
    assert_eq!(whole["total"]["cost"], money(json!(3.5)), "{whole}");
    // Nor can a filter reach them, nor the path of one submission.
    let filtered = world.get(&red, "/v1/usage?since=2026-03-01&until=2026-03-02&tenant=blue").await.json();
    assert_eq!(filtered["total"]["total"]["coreSeconds"], 0);
    assert_eq!(world.get(&red, &format!("/v1/submissions/{theirs}")).await.status, 404);
    let document = world.get(&red, &format!("/v1/submissions/{ours}")).await.json();
    assert_eq!(document["usage"]["cost"], money(json!(2.5)));
}
