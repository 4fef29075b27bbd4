//! The UI of a real Spark driver, in a real browser.

use std::fs;

use serde_json::{Value, json};
use sparkgate_testing::{browser::Browser, gateway::until, http};

use crate::dev::Dev;

/// An application with jobs, a query, a failed stage and an executor, that waits until it is killed.
const APP: &str = "import time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
numbers = spark.sparkContext.parallelize(range(100), 4)
numbers.map(lambda n: (n % 7, n)).reduceByKey(lambda a, b: a + b).collect()
spark.range(1000).selectExpr('id % 5 as five', 'id').groupBy('five').count().collect()
def fail(n):
    raise ValueError('the stage that fails')
try:
    numbers.map(fail).collect()
except Exception:
    pass
print('the application waits', flush=True)
try:
    numbers.map(lambda n: time.sleep(600)).collect()
except Exception:
    time.sleep(600)
";

/// The links of a page that lead neither below the UI nor into the page itself.
fn stray(base: &str) -> String {
    format!(
        "[...document.querySelectorAll('a[href], link[href], script[src], img[src]')].map((one) => one.href || one.src).filter((url) => typeof url === 'string' && !url.startsWith(location.origin + '{base}/') && !url.startsWith('data:'))"
    )
}

#[tokio::test]
async fn all_pages_of_a_real_spark_ui_work_in_a_browser() {
    let dev = Dev::with_spark();
    let app = dev.dir.path().join("app.py");
    fs::write(&app, APP).unwrap();
    let properties = json!({"spark.app.name": "ui", "spark.executor.instances": "1", "spark.driver.memory": "512m",
        "spark.executor.memory": "512m", "spark.task.maxFailures": "1"});
    let id = dev.gateway.submit(&format!("local://{}", app.display()), &[], &properties);
    let read = |path: &str| http::get(dev.gateway.address, &format!("/v1/submissions/{id}{path}")).unwrap();
    until("the application waits", || read("/logs").body.contains("the application waits"));

    let mut browser = Browser::start("none").await;
    browser.call("Page.navigate", json!({"url": format!("{}/v1/submissions/{id}/ui/", dev.url())})).await;
    browser.until("document.title.includes('Spark Jobs') && document.readyState === 'complete'").await;
    assert_eq!(browser.eval("origin").await, "null");
    let base = browser.eval("location.pathname.split('/').slice(0, 5).join('/')").await;
    let base = base.as_str().unwrap().to_owned();
    assert!(base.starts_with(&format!("/v1/ui/{id}/")), "{base}");
    for (page, content) in [
        ("/jobs/", "document.querySelectorAll('a[href*=\"/jobs/job/\"]').length > 2"),
        ("/jobs/job/?id=0", "document.querySelectorAll('a[href*=\"/stages/stage/\"]').length > 0"),
        ("/stages/", "document.querySelectorAll('a[href*=\"/stages/stage/\"]').length > 2"),
        ("/stages/stage/?id=0&attempt=0", "document.querySelectorAll('#active-tasks-table tbody tr').length > 0"),
        ("/SQL/", "document.querySelectorAll('a[href*=\"/SQL/execution/\"]').length > 0"),
        ("/SQL/execution/?id=0", "document.querySelector('#plan-viz-graph svg')"),
        ("/storage/", "document.title"),
        ("/environment/", "document.body.textContent.includes('spark.executor.instances')"),
        ("/executors/", "document.querySelectorAll('#active-executors-table tbody tr').length === 2"),
        ("/executors/threadDump/?executorId=driver", "document.body.textContent.includes('main')"),
    ] {
        // By a click if the page before has the link, as for those of the bar at the top.
        let click = format!(
            "(() => {{ const link = document.querySelector('a[href=\"{base}{page}\"]'); link?.click(); return Boolean(link); }})()"
        );
        if browser.eval(&click).await != json!(true) {
            browser.call("Page.navigate", json!({"url": format!("{}{base}{page}", dev.url())})).await;
        }
        let here = format!("location.href.endsWith('{page}') && document.readyState === 'complete' && ({content})");
        browser.until(&here).await;
        assert_eq!(browser.eval(&stray(&base)).await, json!([]), "{page}");
        assert_eq!(browser.faults().await, [""; 0], "{page}");
    }

    // The link that Spark's page has kills a job.
    browser.call("Page.navigate", json!({"url": format!("{}{base}/jobs/", dev.url())})).await;
    browser.until("document.readyState === 'complete' && document.querySelector('a.kill-link')").await;
    browser.eval("document.querySelector('a.kill-link').click()").await;
    browser.until("document.readyState === 'complete' && !document.querySelector('a.kill-link') && document.title.includes('Spark Jobs')").await;
    assert_eq!(browser.dialogs().len(), 1);
    assert_eq!(browser.eval("location.pathname").await, format!("{base}/jobs/"));

    // What the driver said stays when it has ended.
    let spark = || read("").json()["spark"].clone();
    until("the driver was asked after the kill", || spark()["jobs"]["failed"] == 2);
    let said = spark();
    assert_eq!((&said["jobs"]["running"], &said["tasks"]["killed"].as_u64().is_some()), (&json!(0), &true), "{said}");
    assert_eq!(said["executors"]["count"], 1, "the driver of a local master runs tasks: {said}");
    let failure = said["failedStages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|stage| stage["reason"].as_str().unwrap().contains("the stage that fails"));
    assert!(failure.is_some(), "{said}");
    dev.gateway.kill(&id);
    dev.gateway.follow(&id, "KILLED");
    assert_eq!(spark()["jobs"], said["jobs"]);
    browser.call("Page.navigate", json!({"url": format!("{}/console/submissions/{id}", dev.url())})).await;
    browser.until("document.getElementById('spark')?.textContent.includes('the stage that fails')").await;
    assert_eq!(read("/ui").json()["code"], Value::from("spark-ui-not-found"));
}
