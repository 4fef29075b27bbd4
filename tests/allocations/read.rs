//! What clients ask for most: the status, the document and a page of the list. Each is one statement, whatever features show in it.

use allocation_counter::{AllocationInfo, measure};
use sparkgate::{
    service::{Filter, Service, SubmissionOptions},
    spark::rest::parse_create,
    submission::SubmissionId,
};
use sparkgate_testing::{database, request::request};
use sqlx::PgPool;
use tokio::runtime::Builder;

use crate::{
    expected::{compare, median},
    statements::{Statements, list},
    world,
};

const TIMES: usize = 15;
/// The submissions of a page.
const PAGE: u32 = 50;

/// Makes each of them one that failed in its second attempt, with all that features know of it.
const FAILED: [&str; 4] = [
    "UPDATE submissions SET state = 'FAILED', attempt = 2, pod_uid = 'b', created_at = now() - interval '1 h',
         started_at = now() - interval '50 min', finished_at = now() - interval '10 min', exit_code = 1, reason = 'Error',
         message = 'it failed', pod_millicores = 1000, pod_memory_bytes = 1000",
    "INSERT INTO attempts (submission_id, attempt, state, names, pod_uid, started_at, finished_at, pod_millicores, pod_memory_bytes)
     SELECT id, 1, 'FAILED', names, 'a', now() - interval '55 min', now() - interval '52 min', 1000, 1000 FROM submissions",
    r#"INSERT INTO spark_summaries (submission_id, next_at, attempt, read_at, summary)
     SELECT id, now(), 2, now(), '{"jobs": {"running": 0, "succeeded": 3, "failed": 1}}' FROM submissions"#,
    "INSERT INTO kept_logs (submission_id, attempt, log, size_bytes, cut, events)
     SELECT id, 2, NULL, 0, false, '[]' FROM submissions",
];

#[sqlx::test]
async fn cost_of_reads_is_as_expected(pool: PgPool) {
    let url = database::url(&pool);
    tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let service = runtime.block_on(async { world::service(&url, world::nowhere()).await });
        let ids: Vec<_> = (0..PAGE as usize).map(|n| runtime.block_on(submit(&service, n))).collect();
        runtime.block_on(async {
            for statement in FAILED {
                sqlx::query(statement).execute(&pool).await.unwrap();
            }
        });
        let caller = service.anonymous();
        let (submissions, usage, filter) = (&service.submissions, &service.usage, Filter::default());
        count("status", || {
            runtime.block_on(async { drop(submissions.status(&caller, &ids[0]).await.unwrap().unwrap()) })
        });
        count("document", || {
            runtime.block_on(async {
                let document = submissions.document(&caller, &ids[0], usage).await.unwrap().unwrap();
                let used = document.usage.unwrap();
                assert!(used.attempts.len() == 2 && document.spark.is_some() && document.why.is_some());
            });
        });
        count("page of the list", || {
            runtime.block_on(async {
                let page = submissions.submissions(&caller, &filter, None, PAGE).await.unwrap();
                assert_eq!(page.items.len(), PAGE as usize);
            });
        });
    })
    .await
    .unwrap();
}

async fn submit(service: &Service, n: usize) -> SubmissionId {
    let (request, _) = parse_create(&request(n, "default"), service.submissions.spark_version()).unwrap();
    let options = SubmissionOptions::default();
    service.submissions.submit(&service.anonymous(), request, options, ()).await.unwrap().submission.id
}

fn count(name: &str, read: impl Fn()) {
    // The first calls open a connection and prepare the statement.
    (0..3).for_each(|_| read());
    let allocations: Vec<AllocationInfo> = (0..TIMES).map(|_| measure(&read)).collect();
    let statements = Statements::listen();
    read();
    let statements = statements.take();
    let mut costs = median(allocations);
    costs.insert("statements".to_owned(), statements.len() as u64);
    compare(name, costs, &format!("  its statements:\n{}", list(&statements)));
}
