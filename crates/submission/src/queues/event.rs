//! Events of submissions that wait: none changes the state.

/// What happened to a submission that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueEvent {
    Admitted,
    Held,
    Released,
    Requeued,
}

impl QueueEvent {
    pub const ALL: [Self; 4] = [Self::Admitted, Self::Held, Self::Released, Self::Requeued];

    /// Returns the reason of the event. A submission that is held has it, too.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "Admitted",
            Self::Held => "Held",
            Self::Released => "Released",
            Self::Requeued => "Requeued",
        }
    }
}
