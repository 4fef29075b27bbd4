//! From the text of a request to a committed submission.

use allocation_counter::{AllocationInfo, measure};
use sparkgate::{service::SubmissionOptions, spark::rest::parse_create};
use sparkgate_testing::{database, request::request};
use sqlx::PgPool;
use tokio::runtime::Builder;

use crate::{
    expected::{compare, median},
    statements::{Statements, list},
    world,
};

const TIMES: usize = 15;

#[sqlx::test]
async fn cost_of_accepting_is_as_expected(pool: PgPool) {
    let url = database::url(&pool);
    // Allocations are counted per thread, so everything has to run on one thread.
    let counted = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let service = runtime.block_on(async { world::service(&url, world::nowhere()).await });
        let accept = |n: usize| -> AllocationInfo {
            let body = request(n, "default");
            measure(|| {
                runtime.block_on(async {
                    let (request, _) = parse_create(&body, service.submissions.spark_version()).unwrap();
                    service
                        .submissions
                        .submit(&service.anonymous(), request, SubmissionOptions::default(), ())
                        .await
                        .unwrap();
                });
            })
        };
        // The first call opens connections and prepares statements.
        accept(0);
        let allocations = (1..=TIMES).map(accept).collect();
        let statements = Statements::listen();
        accept(TIMES + 1);
        (allocations, statements.take())
    });
    let (allocations, statements) = counted.await.unwrap();
    let mut costs = median(allocations);
    costs.insert("statements".to_owned(), statements.len() as u64);
    compare("accept", costs, &format!("  its statements:\n{}", list(&statements)));
}
