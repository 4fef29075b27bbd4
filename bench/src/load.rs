//! Clients that use as little CPU as possible, because they share the processors with the measured program.

pub(crate) mod clients;
pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod kubernetes;
pub(crate) mod lines;
pub(crate) mod sightings;
