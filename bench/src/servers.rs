//! The servers beside the gateway: Postgres, etcd, kube-apiserver, or one that is played.

pub(crate) mod kubeconfig;
mod kubernetes;
mod played;
mod postgres;
pub(crate) mod rows;

pub(crate) use kubernetes::Kubernetes;
pub(crate) use played::Played;
pub(crate) use postgres::Database;
