//! The bounds of a tenant.

/// The bounds of a tenant; `None` means that there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantBounds {
    /// Submissions that wait to be launched.
    pub queued: Option<u64>,
    /// Bytes of the records of submissions: their requests, objects and logs.
    pub record_bytes: Option<u64>,
}

impl TenantBounds {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns a number as Postgres' type.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
