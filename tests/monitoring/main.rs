//! The metrics, and what is made of them: the page, the dashboard, the rules and the alerts, in a real Prometheus.
//!
//! Requires what `make test` provides: `DATABASE_URL`, the kube-apiserver's binaries, `prometheus` and `promtool`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[expect(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../support/fault_proxy.rs"]
mod fault_proxy;
#[path = "../program/http.rs"]
#[expect(dead_code, reason = "shared with other tests, which use the rest")]
mod http;
#[expect(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../support/kube.rs"]
mod kube_apiserver;

mod faults;
mod names;
mod page;
mod prometheus;
mod promtool;
