//! The servers beside the gateway: Postgres, etcd, kube-apiserver.

mod kubernetes;
mod postgres;

pub(crate) use kubernetes::Kubernetes;
pub(crate) use postgres::Database;
