//! What the pages say of submissions that failed: what ended one, what its application itself wrote, and how many failed.

use sparkgate::store::{LogEnd, Store};
use sqlx::PgPool;

use crate::console::site::Site;

const LOG: &str = "\
2026-01-02T03:04:05.000000001Z + exec /usr/bin/tini -s -- spark-submit
2026-01-02T03:04:05.000000002Z 26/01/02 03:04:05 INFO SparkContext: Running Spark version 4.0.1
2026-01-02T03:04:05.000000003Z rows: 7
2026-01-02T03:04:05.000000004Z Traceback (most recent call last):
2026-01-02T03:04:05.000000005Z   File \"/app.py\", line 7, in <module>
2026-01-02T03:04:05.000000006Z ValueError: no such column: x
2026-01-02T03:04:05.000000007Z 26/01/02 03:04:06 INFO ShutdownHookManager: Shutdown hook called
";

#[sqlx::test]
async fn the_exception_is_the_title_and_the_applications_own_output_a_click_away(pool: PgPool) {
    let site = Site::start(pool).await;
    let id = site.submit(1).await.remove(0);
    let message = "the driver exited with code 1 (Error): ValueError: no such column: x";
    let ended = "state = 'FAILED', exit_code = 1, reason = 'Error', pod_uid = 'uid', finished_at = clock_timestamp()";
    site.set(&id, &format!("{ended}, message = '{message}'")).await;
    let log = LogEnd { text: LOG.as_bytes().to_vec(), cut: false };
    Store::new(site.world.pool.clone()).keep_log(&id.parse().unwrap(), 1, Some(log), &[]).await.unwrap();
    let page = site.page(&format!("/console/submissions/{id}")).await.body;
    assert!(page.contains("<h2 class=\"message\"><bdi>ValueError: no such column: x</bdi></h2>"), "{page}");
    let end = page.split_once("<pre class=\"log\" tabindex=\"0\">").unwrap().1.split_once("</pre>").unwrap().0;
    let traceback = "Traceback (most recent call last):\n  File \"/app.py\", line 7, in &lt;module&gt;\nValueError: no such column: x";
    assert_eq!(end.trim_end().replace("&quot;", "\""), traceback);
    assert!(page.contains(&format!("href=\"{id}/logs?ownOutput=true\"")));

    let logs = site.page(&format!("/console/submissions/{id}/logs?ownOutput=true")).await.body;
    assert!(logs.contains("rows: 7") && !logs.contains("SparkContext") && logs.contains("All lines"), "{logs}");
    let path = format!("/v1/submissions/{id}/logs?ownOutput=true");
    let own = site.world.get(&site.key, &path).await.body;
    assert_eq!(own.lines().collect::<Vec<_>>()[..2], ["rows: 7", "Traceback (most recent call last):"]);
    let timed = site.world.get(&site.key, &format!("{path}&timestamps=true&tail=3")).await.body;
    assert_eq!(
        timed,
        "2026-01-02T03:04:05.000000005Z   File \"/app.py\", line 7, in <module>\n\
         2026-01-02T03:04:05.000000006Z ValueError: no such column: x\n"
    );
}

#[sqlx::test]
async fn the_overview_has_a_day_a_week_and_a_month_and_leads_to_what_failed(pool: PgPool) {
    let site = Site::start(pool).await;
    let ids = site.submit(3).await;
    let ended = "state = 'FAILED', exit_code = 1, reason = 'Error', message = 'x'";
    for (id, days) in ids.iter().zip([0, 3, 20]) {
        let times = format!(
            "created_at = clock_timestamp() - interval '{days} days 1 minute', finished_at = clock_timestamp() - interval '{days} days'"
        );
        site.set(id, &format!("{ended}, {times}")).await;
    }
    for (period, count) in [("24h", 1), ("7d", 2), ("30d", 3)] {
        let page = site.page(&format!("/console/overview?period={period}")).await.body;
        assert!(page.contains(&format!("<p class=\"value\">{count}</p>")), "{period}: {page}");
        assert!(page.contains(&format!("<td class=\"number\">{count}</td>")), "{period}: {page}");
        assert!(page.contains("href=\"submissions?failureCode=APPLICATION_ERROR&amp;createdAfter="), "{page}");
    }
    assert_eq!(site.page("/console/overview?period=1y").await.status, 400);
}
