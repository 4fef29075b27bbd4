//! Parts that the crates of the service share.

pub mod detached;
pub mod error;
pub mod pauses;
pub mod rate_limits;
pub mod shares;
pub mod store_owner;
pub mod tenant_slots;
pub mod watched;
