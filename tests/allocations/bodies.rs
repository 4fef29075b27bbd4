//! The memory of request bodies.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use allocation_counter::measure;
use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures::{StreamExt, future::join_all, stream};
use http::{Request, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use sparkgate::api::{HttpSettings, router};
use sparkgate_testing::database;
use sqlx::PgPool;
use tokio::runtime::Builder;
use tower::ServiceExt;

use crate::world;

const LARGE: usize = 16 << 20;
const BODIES: usize = 10;

/// A field that the gateway doesn't know, with values that would take many times their bytes if they were decoded.
const UNKNOWN: &str = r#"{"mainClass": "A", "other": ["#;
/// Arguments, which are decoded.
const ARGUMENTS: &str = r#"{"mainClass": "A", "appArgs": ["#;

/// Returns a body of 16 MB that is sent in pieces and takes no memory itself: `begin`, the same item again and again, and an
/// end that refuses the request.
fn body(begin: &'static str, item: &'static str) -> (Body, u64) {
    const END: &str = "1], \"runTimeoutSeconds\": -1}";
    let pieces = (LARGE - begin.len() - END.len()) / item.len();
    let length = begin.len() + pieces * item.len() + END.len();
    let pieces =
        stream::iter([begin]).chain(stream::iter(std::iter::repeat_n(item, pieces))).chain(stream::iter([END]));
    let pieces = pieces.map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes())));
    (Body::from_stream(pieces), length as u64)
}

#[sqlx::test]
async fn ten_large_bodies_cost_less_than_twice_their_bytes(pool: PgPool) {
    let url = database::url(&pool);
    // Allocations are counted per thread, so everything has to run on one thread.
    let counted = tokio::task::spawn_blocking(move || {
        let ones: &'static str = "1,".repeat(32 << 10).leak();
        let argument: &'static str = format!("\"{}\",", "x".repeat(64 << 10)).leak();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let service = runtime.block_on(async { world::service(&url, world::nowhere()).await });
        let settings = HttpSettings {
            max_request_body_bytes: LARGE,
            max_body_bytes_in_flight: BODIES * LARGE,
            ..HttpSettings::default()
        };
        let router = router(service, settings).unwrap();
        for (begin, item) in [(UNKNOWN, ones), (ARGUMENTS, argument)] {
            let send = async || {
                let (body, length) = body(begin, item);
                let request = Request::post("/v1/submissions").header(header::CONTENT_TYPE, "application/json");
                // With its length, as clients send it.
                let body = Body::new(Announced { body, length });
                let response = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
                let status = response.status();
                let problem = response.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(status, 400, "{problem:?}");
            };
            let cost = measure(|| {
                runtime.block_on(join_all((0..BODIES).map(|_| send())));
            });
            let bytes = (BODIES * LARGE) as u64;
            println!("{begin}: {} MiB at most for {} MiB", cost.bytes_max >> 20, bytes >> 20);
            assert!(cost.bytes_max < 2 * bytes, "{} bytes for {bytes}", cost.bytes_max);
        }
    });
    counted.await.unwrap();
}

/// A body whose length is known.
struct Announced {
    body: Body,
    length: u64,
}

impl HttpBody for Announced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
