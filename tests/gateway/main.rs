//! The gateway in this process, on a real Postgres. The files beside this one have the whole life of submissions on a real
//! kube-apiserver, of which the tests play the kubelet. The suites in folders have a cluster in memory, but for `lost_replies`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod boundaries;
mod clean_up;
mod denials;
mod dependants;
mod executors;
mod faults;
mod files;
mod hanging_launch;
mod health;
mod identity;
mod in_memory;
mod kill;
mod kubeflow;
mod late;
mod launch;
mod limits;
mod logs;
mod neighbours;
mod outcome;
mod pages;
mod plans;
mod pod_group;
mod queues;
mod quota;
mod replicas;
mod restarts;
mod retries;
mod rights;
mod sessions;
mod spark_lines;
mod submitter;
mod usage;
mod wires;
mod world;

mod access;
mod console;
mod events;
mod lost_replies;
mod resources;
mod spark_protocol;
mod webhooks;
