//! The parts of a crash run.
//!
//! Real: Postgres, etcd, kube-apiserver ([`servers`]) and the program under test ([`replica`]). Simulated: the
//! scheduler and the kubelet ([`kubelet`]), the clients ([`clients`]), the faults ([`chaos`]), and other users of the
//! same servers, which change pods ([`adversary`]), lock rows ([`locks`]), and are bad neighbours ([`tenants`]). Every simulated event is recorded
//! ([`truth`]), and at the end compared with what the program recorded ([`oracle`]).

pub(crate) mod absence;
pub(crate) mod adversary;
pub(crate) mod audit;
pub(crate) mod chaos;
pub(crate) mod clients;
pub(crate) mod failover;
pub(crate) mod files;
pub(crate) mod history;
pub(crate) mod http;
pub(crate) mod kubelet;
pub(crate) mod locks;
pub(crate) mod oracle;
pub(crate) mod outage;
pub(crate) mod pages;
pub(crate) mod plan;
pub(crate) mod queues;
pub(crate) mod readers;
pub(crate) mod replica;
pub(crate) mod report;
#[cfg(test)]
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod servers;
pub(crate) mod takeover;
pub(crate) mod tenants;
pub(crate) mod truth;
pub(crate) mod upgrade;
pub(crate) mod world;
