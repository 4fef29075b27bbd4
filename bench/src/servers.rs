//! The servers that the gateway uses: Postgres, etcd, a real or a played kube-apiserver, an issuer of tokens, and a
//! collector of traces.

mod collector;
mod issuer;
pub(crate) mod kubeconfig;
mod kubernetes;
mod played;
mod postgres;
pub(crate) mod rows;

pub(crate) use collector::Collector;
pub(crate) use issuer::Issuer;
pub(crate) use kubernetes::Kubernetes;
pub(crate) use played::Played;
pub(crate) use postgres::Database;
