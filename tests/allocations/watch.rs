//! One event of the watch: from the text of a driver pod to its observation.

use std::convert::Infallible;

use allocation_counter::{AllocationInfo, measure};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::client::Body;
use serde_json::json;
use sparkgate::cluster::{Cluster, WatchReport};
use tokio::runtime::Builder;

use crate::{
    expected::{Costs, compare},
    pod::driver_pod,
};

/// The size of a chunk, as an API server sends it.
const FRAME: usize = 16 << 10;

#[test]
fn cost_of_a_watch_event_is_as_expected() {
    // Both measurements include the beginning and the end of a watch.
    watching(1);
    let (some, more) = (watching(100), watching(600));
    let each = |cost: fn(&AllocationInfo) -> u64| (cost(&more) - cost(&some)) / 500;
    let costs = Costs::from([
        ("allocations".to_owned(), each(|info| info.count_total)),
        ("bytes".to_owned(), each(|info| info.bytes_total)),
    ]);
    compare("line of the watch", costs, "");
}

/// Returns the allocations of a watch with `events` events.
fn watching(events: usize) -> AllocationInfo {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let lines: String =
        (0..events).map(|n| json!({"type": "MODIFIED", "object": driver_pod(n)}).to_string() + "\n").collect();
    let cluster = Cluster::new(server(lines.into()), &[]);
    measure(|| {
        runtime.block_on(async {
            let mut observed = cluster.watch(None, None).filter_map(async |shown| shown.report).boxed_local();
            assert!(matches!(observed.next().await, Some(WatchReport::Listed { .. })));
            for _ in 0..events {
                assert!(matches!(observed.next().await, Some(WatchReport::Driver(_))));
            }
        });
    })
}

/// Returns an API server without pods to list, which sends these lines to a watch.
fn server(lines: Bytes) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let watches = request.uri().query().unwrap_or_default().contains("watch=true");
        let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []});
        let mut body = if watches { lines.clone() } else { list.to_string().into() };
        let frames = std::iter::from_fn(move || {
            (!body.is_empty()).then(|| Ok::<_, Infallible>(Frame::data(body.split_to(FRAME.min(body.len())))))
        });
        std::future::ready(Ok::<_, Infallible>(http::Response::new(StreamBody::new(stream::iter(frames)))))
    });
    kube::Client::new(service, "default")
}
