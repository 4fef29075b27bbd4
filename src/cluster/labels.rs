//! The labels by which Sparkgate watches its pods. Everything else on them is Spark's.

use crate::submission::{Installation, SubmissionId};

/// On driver and executor pods: the id of the submission.
pub const SUBMISSION_ID: &str = "sparkgate.dev/submission-id";
/// On driver and executor pods: the number of the attempt.
pub const ATTEMPT: &str = "sparkgate.dev/attempt";
/// On driver and executor pods: the installation that made them, so that two on one cluster leave each other's alone.
pub const INSTANCE: &str = "sparkgate.dev/instance";
/// The finalizer of driver pods: taken away once the outcome is recorded.
pub const FINALIZER: &str = "sparkgate.dev/outcome";

/// An annotation on driver pods: their identity, signed by the installation
/// ([`Installation::identity`](crate::submission::Installation::identity)).
pub const IDENTITY: &str = "sparkgate.dev/identity";
/// Spark's label that tells drivers from executors, and its value on drivers.
pub(super) const ROLE: &str = "spark-role";
pub(super) const DRIVER: &str = "driver";
/// An annotation on driver pods: the container whose end is the driver's, whatever a webhook adds beside it.
pub(super) const DRIVER_CONTAINER: &str = "sparkgate.dev/driver-container";

/// The labels that the driver and executor pods of an attempt carry.
pub(super) fn of(submission: &SubmissionId, attempt: i32, installation: &Installation) -> [(&'static str, String); 3] {
    [(SUBMISSION_ID, submission.to_string()), (ATTEMPT, attempt.to_string()), (INSTANCE, installation.id.to_string())]
}
