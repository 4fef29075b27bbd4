//! Tests that need no server: the rules of the source tree, the fuzz targets on their kept inputs, the page of properties, and `render`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod fuzz;
mod layers;
mod properties;
mod render;
