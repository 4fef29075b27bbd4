//! The labels and annotations by which pods join queues of Kueue.

/// The name of Kueue in the list of schedulers. Kueue isn't one: it holds pods back from the scheduler.
pub(crate) const NAME: &str = "kueue";
/// The label that names a `LocalQueue`.
pub const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// The label that names a `WorkloadPriorityClass`.
pub const PRIORITY: &str = "kueue.x-k8s.io/priority-class";
/// The label of pods that Kueue's controller manages. Its webhook sets it, and a job sets it on executors that have
/// [`SUSPENDING_PARENT`].
pub const MANAGED: &str = "kueue.x-k8s.io/managed";
/// The annotation of a pod that is queued although another pod owns it.
pub const SUSPENDING_PARENT: &str = "kueue.x-k8s.io/pod-suspending-parent";
