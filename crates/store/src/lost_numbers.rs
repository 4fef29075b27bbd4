//! Numbers of events that were lost with a history of the database.

/// The numbers of events that may have been given in a history that was lost: those above `after`, up to `until`. No event has
/// one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostNumbers {
    pub after: i64,
    pub until: i64,
}

impl LostNumbers {
    /// Returns whether an event with this number was lost, if there was one.
    pub fn contain(self, number: i64) -> bool {
        self.after < number && number < self.until
    }
}
