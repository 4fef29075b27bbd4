//! The metrics, and what is made of them: the page, the dashboard, the rules and the alerts, in a real Prometheus.
//!
//! Requires what `make test` provides: `DATABASE_URL`, the kube-apiserver's binaries, `prometheus` and `promtool`.

mod faults;
mod names;
mod page;
mod prometheus;
mod promtool;
