//! Compares the models with the real components: the same random operations, result by result.

mod cluster;
mod kubernetes;
mod store;
