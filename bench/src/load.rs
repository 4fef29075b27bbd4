//! Clients that cost as little as they can: they share the processors with what is measured.

pub(crate) mod clients;
pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod kubernetes;
