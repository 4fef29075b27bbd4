//! Webhooks: a real Postgres, replicas that die, and receivers that fail, hang and lie.

mod delivery;
mod destinations;
mod due;
mod killed;
mod lineage;
mod manage;
mod process;
mod verified;
mod world;
