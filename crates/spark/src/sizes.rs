//! Sizes and numbers of properties, as Spark reads them.

pub use crate::conf::{bytes, double, mib};
