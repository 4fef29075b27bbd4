//! app
pub mod render;
