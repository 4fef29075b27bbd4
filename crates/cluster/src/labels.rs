//! The labels by which Sparkgate watches its pods. All other labels on these pods are Spark's.

use sparkgate_submission::{Installation, SubmissionId};

/// A label on driver and executor pods: the id of the submission.
pub const SUBMISSION_ID: &str = "sparkgate.dev/submission-id";
/// A label on driver and executor pods: the number of the attempt.
pub const ATTEMPT: &str = "sparkgate.dev/attempt";
/// A label on driver and executor pods: the installation that created them, so that two installations on one cluster don't
/// touch each other's pods.
pub const INSTANCE: &str = "sparkgate.dev/instance";
/// All labels of ours.
pub(super) const ALL: [&str; 3] = [SUBMISSION_ID, ATTEMPT, INSTANCE];
/// The finalizer of driver pods: removed once the outcome is recorded.
pub const FINALIZER: &str = "sparkgate.dev/outcome";

/// An annotation on driver pods: their identity, signed by the installation
/// ([`Installation::identity`](sparkgate_submission::Installation::identity)).
pub const IDENTITY: &str = "sparkgate.dev/identity";
/// Spark's label that distinguishes drivers from executors, and its value on drivers.
pub(super) const ROLE: &str = "spark-role";
pub(super) const DRIVER: &str = "driver";
/// An annotation on driver pods: the container whose end is the end of the driver, whatever containers a webhook adds.
pub(super) const DRIVER_CONTAINER: &str = "sparkgate.dev/driver-container";

/// All annotations of ours.
pub(super) const ANNOTATIONS: [&str; 2] = [IDENTITY, DRIVER_CONTAINER];

/// Returns the labels that the driver and executor pods of an attempt carry.
pub(super) fn of(submission: &SubmissionId, attempt: i32, installation: &Installation) -> [(&'static str, String); 3] {
    [(SUBMISSION_ID, submission.to_string()), (ATTEMPT, attempt.to_string()), (INSTANCE, installation.id.to_string())]
}
