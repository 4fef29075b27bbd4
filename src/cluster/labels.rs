//! The labels by which Sparkgate knows its pods. Everything else on them is Spark's.

/// On driver and executor pods: the id of the submission.
pub const SUBMISSION_ID: &str = "sparkgate.dev/submission-id";
/// On driver and executor pods: the number of the attempt.
pub const ATTEMPT: &str = "sparkgate.dev/attempt";
/// On driver and executor pods: the installation that made them, so that two on one cluster leave each other's alone.
pub const INSTANCE: &str = "sparkgate.dev/instance";
/// The finalizer of driver pods: taken away once the outcome is recorded.
pub const FINALIZER: &str = "sparkgate.dev/outcome";

/// An annotation on driver pods: the container whose end is the driver's, whatever a webhook adds beside it.
pub(super) const DRIVER_CONTAINER: &str = "sparkgate.dev/driver-container";
