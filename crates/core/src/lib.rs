//! The life of a submission: accepted, launched, followed, ended. Features are attached to it at the [`ports`].

pub mod effects;
pub mod encryption;
pub mod event_feed;
pub mod health;
pub mod home_cluster;
pub mod judgement;
pub mod launcher;
pub mod leadership;
pub mod pod_follower;
pub mod ports;
pub mod prepared;
pub mod redaction;
pub mod signing_keys;
pub mod submissions;
pub mod usage;
pub mod wakeups;
pub mod witness;
