//! The page of queues, and the places of submissions in them.

use axum::{
    body::Body,
    http::{Request, header},
};
use sparkgate::access::Role;
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;

use crate::access::world::World;
use crate::console::{accessible::assert_accessible, site::Site};
use crate::in_memory::Answer;

/// Two queues for all, and one that only a tenant may use.
const QUEUES: &str = "
authentication: {}
capacity: {cores: 12}
queues:
  day: {weight: 3, caps: {cores: 6}}
  night: {weight: 2}
  secret: {weight: 1, tenants: [blue]}
tenants:
  red: {namespaces: [red], defaultQueue: day}
  blue: {namespaces: [blue], defaultQueue: secret}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}
";

async fn post(world: &World, key: &str, path: &str, form: &str) -> Answer {
    let request = Request::post(path).header(header::HOST, "gateway");
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
    world.answer(request.body(Body::from(form.to_owned())).unwrap()).await
}

/// Admits what there is room for.
async fn admit(world: &World) {
    while !world.service.leadership.acquire("queues").await.unwrap() {}
    world.service.queues.round().await.unwrap();
}

/// Returns the cells of a row of a table, by its header.
fn cells(body: &str, header: &str) -> Vec<String> {
    let (_, row) =
        body.split_once(&format!("<th scope=\"row\">{header}</th>")).unwrap_or_else(|| panic!("{header}: {body}"));
    let text = |cell: &str| {
        let tags = cell.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        tags.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("|")
    };
    row.split("</tr>").next().unwrap().split("</td>").map(text).collect()
}

#[sqlx::test]
async fn queues_show_what_runs_waits_and_is_lent(pool: PgPool) {
    let site = Site::with(pool, QUEUES).await;
    // Each takes a core for its driver, and one for each of two executors.
    let ids = site.submit(4).await;
    admit(&site.world).await;
    let body = site.page("/console/queues").await.body;
    assert!(body.contains("href=\"queues\" aria-current=\"page\""), "{body}");
    let day = cells(&body, "<bdi>day</bdi>");
    // Two run, in half of the capacity, which is the fair share.
    assert_eq!(day[..4], ["open", "3", "50 %", "50 %"].map(str::to_owned), "{day:?}");
    assert!(
        day[5].contains("2 |submissions") && day[5].contains("6 of 6 |cores") && day[6] == "2" && day[7] == "0",
        "{day:?}"
    );
    let red = cells(&body, "tenant <bdi>red</bdi>");
    assert!(red[1].contains("2 |submissions") && red[2].ends_with('2') && red[3] == "0", "{red:?}");

    let hold = format!("/console/submissions/{}/hold", ids[3]);
    assert_eq!(post(&site.world, &site.key, &hold, "").await.status, 303);
    let body = site.page("/console/queues").await.body;
    assert_eq!(cells(&body, "<bdi>day</bdi>")[6..8], ["1".to_owned(), "1".to_owned()]);
    site.set(&ids[0], "state = 'KILLED', finished_at = clock_timestamp()").await;
    site.set(&ids[1], "queue = 'night', cost_millicores = 9000, cost_pods = 9").await;
    let body = site.page("/console/queues").await.body;
    let night = cells(&body, "<bdi>night</bdi>");
    // 9 of 12 cores, which is more than a third.
    assert_eq!(night[2..4], ["33 %".to_owned(), "75 %".to_owned()]);
    assert!(night[4].contains("31 %") && night[4].contains("day") && night[4].contains("secret"), "{night:?}");
    assert!(cells(&body, "<bdi>day</bdi>")[4].contains("lends "), "{body}");

    let red = site.world.key(Role::Viewer, Some("red")).await;
    let body = site.world.get(&red, "/console/queues").await.body;
    assert!(!body.contains("secret") && body.contains("others") && !body.contains("queues/state"), "{body}");
}

#[sqlx::test]
async fn operators_of_all_tenants_change_queues(pool: PgPool) {
    let site = Site::with(pool, QUEUES).await;
    let red = site.world.key(Role::Operator, Some("red")).await;
    let form = "queue=day&state=paused&reason=an+upgrade";
    assert_eq!(post(&site.world, &red, "/console/queues/state", form).await.status, 403);
    let changed = post(&site.world, &site.key, "/console/queues/state", form).await;
    assert_eq!((changed.status, changed.headers["location"].as_str()), (303, "../queues"));
    let body = site.page("/console/queues").await.body;
    let state = &cells(&body, "<bdi>day</bdi>")[0];
    assert!(state.starts_with("paused|") && state.ends_with("|an upgrade"), "{state}");
    for (form, status) in [
        ("queue=none&state=paused", 422),
        ("queue=day&state=closed", 400),
        ("queue=day&state=paused&reason=a%0Ab", 400),
        ("queue=day&state=draining", 303),
        ("queue=day&state=open", 303),
    ] {
        assert_eq!(post(&site.world, &site.key, "/console/queues/state", form).await.status, status, "{form}");
    }
    let body = site.page("/console/queues").await.body;
    assert_eq!(cells(&body, "<bdi>day</bdi>")[0], "open");
}

#[sqlx::test]
async fn a_submission_is_held_and_released_on_its_page(pool: PgPool) {
    let site = Site::with(pool, QUEUES).await;
    let submitter = site.world.key(Role::Submitter, Some("red")).await;
    let viewer = site.world.key(Role::Viewer, Some("red")).await;
    let id = site.world.submit(&submitter, "red").await;
    let path = format!("/console/submissions/{id}");
    let page = async |key: &str| site.world.get(key, &path).await.body;
    assert!(page(&submitter).await.contains("/hold\"") && !page(&viewer).await.contains("/hold\""));
    assert_eq!(post(&site.world, &viewer, &format!("{path}/hold"), "").await.status, 403);
    assert_eq!(post(&site.world, &submitter, &format!("{path}/hold"), "").await.status, 303);
    let body = page(&submitter).await;
    assert!(body.contains("<dt>Held</dt>") && body.contains("/release\"") && !body.contains("/hold\""), "{body}");
    assert!(site.page("/console/submissions").await.body.contains(">held</span>"));
    admit(&site.world).await;
    assert!(page(&submitter).await.contains("<dt>Held</dt>"), "it isn't admitted");
    assert_eq!(post(&site.world, &submitter, &format!("{path}/release"), "").await.status, 303);
    admit(&site.world).await;
    let body = page(&submitter).await;
    assert!(!body.contains("<h2>Queue</h2>") && body.contains("<dt>Admitted</dt>"), "{body}");
    let unknown = "/console/submissions/driver-20260101000000-9999/hold";
    assert_eq!(post(&site.world, &submitter, unknown, "").await.status, 404);
}

#[sqlx::test]
async fn all_that_a_filter_of_the_list_selects_are_held_released_and_moved(pool: PgPool) {
    let site = Site::with(pool, QUEUES).await;
    let submitter = site.world.key(Role::Submitter, Some("red")).await;
    let viewer = site.world.key(Role::Viewer, Some("red")).await;
    let ids = [site.world.submit(&submitter, "red").await, site.world.submit(&submitter, "red").await];
    let other = site.world.submit(&site.key, "blue").await;
    let list = async |key: &str, query: &str| site.world.get(key, &format!("/console/submissions?{query}")).await.body;
    let form = "action=\"submissions/places\"";
    assert!(!list(&submitter, "").await.contains(form), "without a filter it would be everything");
    assert!(!list(&viewer, "queue=day").await.contains(form));
    let body = list(&submitter, "queue=day&state=QUEUED").await;
    assert!(body.contains(form) && body.contains("value=\"queue=day&amp;state=QUEUED\""), "{body}");
    assert!(body.contains("<option value=\"day\" selected>day</option>") && !body.contains("secret"), "{body}");
    let change = async |key: &str, fields: &str| {
        let fields = format!("filter=queue%3Dday%26state%3DQUEUED&reason=no+data&queue=&priority=&{fields}");
        post(&site.world, key, "/console/submissions/places", &fields).await
    };
    assert_eq!(change(&viewer, "action=hold").await.status, 403);
    let held = change(&submitter, "action=hold").await;
    assert!(held.status == 200 && held.body.contains("2 submissions held"), "{}", held.body);
    assert!(held.body.contains("href=\"../submissions?queue=day&amp;state=QUEUED\""), "{}", held.body);
    let page = site.page(&format!("/console/submissions/{}", ids[1])).await.body;
    assert!(page.contains("no data"), "{page}");
    assert!(change(&submitter, "action=release").await.body.contains("2 submissions released"));
    for (fields, status) in [("action=move&priority=high", 400), ("action=drop", 400), ("action=move", 400)] {
        assert_eq!(change(&submitter, fields).await.status, status, "{fields}");
    }
    let moved = "filter=queue%3Dday&action=move&queue=night&priority=5";
    let moved = post(&site.world, &submitter, "/console/submissions/places", moved).await;
    assert!(moved.body.contains("2 can't be changed in this way") && moved.body.contains(&ids[0]), "{}", moved.body);
    let moved = "filter=queue%3Dday&action=move&queue=night";
    let moved = post(&site.world, &submitter, "/console/submissions/places", moved).await;
    assert!(moved.body.contains("2 submissions moved"), "{}", moved.body);
    assert!(!list(&submitter, "queue=night").await.contains(&other));
}

#[sqlx::test]
async fn a_submission_shows_where_it_stands(pool: PgPool) {
    let site = Site::with(pool, QUEUES).await;
    let ids = site.submit(5).await;
    admit(&site.world).await;
    let list = site.page("/console/submissions").await.body;
    for place in ["next in <bdi>day</bdi>", "1 before it in <bdi>day</bdi>", "2 before it in <bdi>day</bdi>"] {
        assert!(list.contains(place), "{place}: {list}");
    }
    assert_eq!(list.matches(" in <bdi>day</bdi>").count(), 3, "those that are admitted have no place");
    let next = site.page(&format!("/console/submissions/{}", ids[2])).await.body;
    assert!(next.contains("the cap of queue day on cores has no room for 3: 6 of 6 are used"), "{next}");
    assert!(next.contains("unknown: the queue is paused, or too little was admitted there in the last day"), "{next}");
    let history = "INSERT INTO queue_admissions (queue, tenant, waited_seconds, admitted_at)
                   SELECT 'day', 'red', 90, clock_timestamp() - make_interval(mins => n) FROM generate_series(1, 30) AS n
                   UNION ALL SELECT 'day', 'red', 0, clock_timestamp() - make_interval(hours => n) FROM generate_series(2, 9) AS n";
    sqlx::query(history).execute(&site.world.pool).await.unwrap();
    let last = site.page(&format!("/console/submissions/{}", ids[4])).await.body;
    assert!(last.contains("2 of its tenant are before it"), "{last}");
    // One is admitted each minute. The hours in which none waited don't count.
    assert!(last.contains("in about 2m") || last.contains("in about 3m"), "{last}");
}

#[sqlx::test]
async fn the_page_of_queues_is_for_all(pool: PgPool) {
    let site = Site::with(pool, QUEUES).await;
    let ids = site.submit(4).await;
    admit(&site.world).await;
    assert_eq!(
        post(&site.world, &site.key, "/console/queues/state", "queue=night&state=paused&reason=x").await.status,
        303
    );
    let filtered = "/console/submissions?queue=day&state=QUEUED".to_owned();
    let mut pages = vec!["/console/queues".to_owned(), "/console/submissions".to_owned(), filtered.clone()];
    pages.extend([0, 3].map(|at: usize| format!("/console/submissions/{}", ids[at])));
    assert_accessible(&site, &pages).await;
    let mut browser = Browser::start(&site.key).await;
    for width in [390, 1280] {
        browser.set_appearance(width, "light").await;
        for page in &pages {
            browser.open(&site.url(page)).await;
            let beyond = browser.eval("document.documentElement.scrollWidth - innerWidth").await;
            assert!(beyond.as_i64().unwrap() <= 0, "{page} is {beyond} too wide for {width}");
        }
    }
    browser.open(&site.url(&pages[0])).await;
    browser.eval("document.querySelector('select[name=queue]').value = 'night'; document.querySelector('button[value=open]').click()").await;
    browser
        .until("document.querySelector('.queues') && !document.querySelector('.queues').textContent.includes('paused')")
        .await;
    browser.open(&site.url(&filtered)).await;
    browser.eval("document.querySelector('details.change').open = true; document.querySelector('button[value=hold]').click()").await;
    browser.until("document.querySelector('h1')?.textContent.includes('submissions held')").await;
    assert_eq!(browser.faults().await, [""; 0]);
}
