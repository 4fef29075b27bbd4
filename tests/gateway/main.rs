//! The whole life of submissions on a real Postgres and a real kube-apiserver. The tests play the kubelet.

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
mod kill;
mod kubeflow;
mod launch;
mod limits;
mod logs;
mod neighbours;
mod outcome;
mod pages;
mod pod_group;
mod quota;
mod replicas;
mod restarts;
mod retries;
mod rights;
mod spark_lines;
mod submitter;
mod usage;
mod wires;
mod world;
