//! Queues: what runs and what waits in them, and the admission of what is next.
//!
//! A round reads the version of rounds, and then what runs and who is next ([`QueueRound`]). The decision is made in memory
//! (`sparkgate_submission::queues`). The statement that admits its submissions (`Store::admit`) has an effect only if the version is still
//! the same, and makes it another one. So each decision starts from the result of the decision before it. Another
//! replica that had the lease may have made that one, or a statement of this replica whose reply was lost. What runs only grows by admissions.

mod admit;
mod entrance;
mod hold;
mod requeue;
mod round;
mod standing;
mod states;

pub use admit::Admission;
pub(super) use entrance::Entrances;
pub use entrance::QueueEntrance;
pub use hold::{Changed, HoldAnswer, Matching};
pub use requeue::{Destination, InBacklog, Move, Moved, ToRequeue, Waits};
pub use round::{Backlog, Largest, Place, QueueRound, WaitingHead};
pub use standing::{COUNTED_IN_LISTS, QueueStanding};
pub(super) use standing::{StoredStanding, push_standing};
pub use states::{QueueState, StoredQueueState};
