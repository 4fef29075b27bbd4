//! Sign-in of a real browser on the provider's own pages.

use serde_json::json;
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;

use crate::provider::{
    keycloak::Keycloak,
    realm::{PASSWORD, Realm},
    world::World,
};

/// Signs a user in on the provider's page, to which a page of the console leads.
async fn sign_in(browser: &mut Browser, world: &World, user: &str) {
    browser.click("document.querySelector('a.primary')").await;
    browser.until("document.getElementById('kc-form-login')").await;
    let fill = format!(
        "document.getElementById('username').value = {}; document.getElementById('password').value = {}; \
         document.getElementById('kc-login').click()",
        json!(user),
        json!(PASSWORD)
    );
    browser.eval(&fill).await;
    browser
        .until(&format!("location.href.startsWith({}) && document.querySelector('.caller')", json!(world.url())))
        .await;
}

#[sqlx::test]
async fn a_user_signs_in_on_the_page_of_the_provider_and_out_of_both(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, 300).await).await;
    let page = format!("{}/console/submissions?namespace=default", world.url());
    let id = world.submit(&world.realm.token("alice").await).await;
    let mut browser = Browser::without_key().await;
    for _ in 0..2 {
        browser.open(&page).await;
        sign_in(&mut browser, &world, "alice").await;
        assert_eq!(browser.eval("location.href").await, page.as_str());
        assert_eq!(browser.eval("document.querySelector('.caller').textContent").await, "alice");
        assert_eq!(browser.eval("document.querySelector('#rows tr').id").await, id.as_str());
        browser.click("document.querySelector('form.out button')").await;
        // Back from the provider, which asks for the password again the next time.
        browser.until(&format!("location.href === {}", json!(format!("{}/console/signed-out", world.url())))).await;
    }
}

#[sqlx::test]
async fn a_session_is_renewed_until_the_provider_ends_it(pool: PgPool) {
    let world = World::start(&pool, Realm::create(Keycloak::shared().await, 5).await).await;
    let page = format!("{}/console/submissions", world.url());
    let mut browser = Browser::without_key().await;
    browser.open(&page).await;
    sign_in(&mut browser, &world, "alice").await;
    let renewals = "SELECT renewals FROM browser_sessions";
    while sqlx::query_scalar::<_, i32>(renewals).fetch_one(&pool).await.unwrap() < 2 {
        assert_eq!(browser.eval("fetch(location.href).then((page) => page.status)").await, 200);
    }
    world.realm.log_out("alice").await;
    browser.until("document.querySelector('.problem h1')?.textContent === 'Sign in'").await;
    browser.open(&page).await;
    sign_in(&mut browser, &world, "bob").await;
    assert_eq!(browser.eval("document.querySelector('.caller').textContent").await, "bob");
}
