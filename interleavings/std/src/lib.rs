//! The standard library, with shuttle's locks and atomics.

pub use ::std::*;

pub mod sync {
    pub use ::std::sync::{OnceLock, PoisonError};
    pub use shuttle::sync::*;
}
