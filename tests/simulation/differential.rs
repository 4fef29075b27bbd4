//! The models against what they are models of: the same random operations, answer by answer.

mod cluster;
mod kubernetes;
mod store;
