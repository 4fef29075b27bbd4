//! Who may do what: authentication, tenants and roles, on the real router and a real Postgres. The cluster is one in memory without
//! a node, so submissions stay queued.

mod audit;
mod canaries;
mod cluster;
mod copies;
mod encryption;
mod forced;
mod foreign;
mod hosts;
mod keys;
mod kubeflow;
mod later_attempts;
mod launch;
mod limits;
mod livy;
mod logins;
mod matrix;
mod oidc;
mod policy;
mod queue_words;
mod queues;
mod reload;
mod signing;
mod spark_listener;
mod tenants;
mod transfers;
mod usage;
pub(crate) mod world;
