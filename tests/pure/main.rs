//! Tests that need no server: the rules of the source tree, the fuzz targets on their kept inputs, the page of properties, `render`, and
//! releases.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod fuzz;
mod layers;
mod properties;
mod release;
mod render;
