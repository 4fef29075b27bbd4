//! What to do about a failure, or while a submission waits: the words of `docs/reference/failures.md`, by code.

use super::FailureCode;

/// Returns what happened, and what to do about it.
pub fn advice(code: FailureCode, is_over: bool) -> (&'static str, &'static str) {
    match code {
        FailureCode::ApplicationError => (
            "The application ended with an exit code other than 0",
            "The message has the exception, if the log has one; otherwise read the log. Exit code 137 without OUT_OF_MEMORY is often memory, too.",
        ),
        FailureCode::OutOfMemory => (
            "The driver exceeded the memory of its container, or of its heap",
            "Raise spark.driver.memory, or spark.driver.memoryOverhead for memory outside the heap, such as Python's; collect less to \
             the driver; or set memoryGrowth, and the next attempt has more.",
        ),
        FailureCode::StartFailed => (
            "The container couldn't start its process",
            "Check the image's entry point and its architecture, and that it runs as the pod's user.",
        ),
        FailureCode::Evicted => (
            "The node ran out of a resource, was drained, or rejected the pod",
            "Set maxRetries.infrastructure; for evictions by disk or memory, check the driver's requests.",
        ),
        FailureCode::NodeLost => (
            "The node was shut down or restarted, or didn't answer for too long",
            "Set maxRetries.infrastructure; don't run drivers on nodes that may be reclaimed.",
        ),
        FailureCode::Preempted => (
            "A pod with a higher priority replaced the driver",
            "Set maxRetries.infrastructure, or give drivers a priority class in a pod template.",
        ),
        FailureCode::Lost => (
            "The pod vanished before its end was observed, so the outcome can't be known",
            "Check the application's own output: it may have succeeded. Keep the finalizer of drivers on.",
        ),
        FailureCode::PodDeleted => (
            "Another client deleted the pod",
            "Find out which one: the API server's audit log has it. Kill through Sparkgate instead.",
        ),
        FailureCode::Unknown => (
            "The pod failed without an exit code and without a known reason",
            "See the reason and Kubernetes' events below, and the kubelet of the node.",
        ),
        FailureCode::Refused if is_over => (
            "The API server, a policy, a webhook or the scheduler refused an object",
            "The message is theirs: change the request, or what it violates. The same request would be refused again.",
        ),
        FailureCode::Refused => (
            "The API server or a webhook denies the launch for now",
            "An operator has to give the gateway's account its rights; the gateway's log names the missing ones. The launch is retried.",
        ),
        FailureCode::QuotaExceeded if is_over => (
            "The driver needs more than the quota of the namespace has in all",
            "The message has the sum: lower the driver's cores and memory, or raise the ResourceQuota.",
        ),
        FailureCode::QuotaExceeded => (
            "The quota of the namespace has no room",
            "Nothing is to be done: it is launched when pods of the namespace have ended. Raise the ResourceQuota if that takes too long.",
        ),
        FailureCode::KilledOnRequest => (
            "A client killed it",
            "Nothing is to be done. Where callers are authenticated, the message says who it was, and the audit has the request.",
        ),
        FailureCode::StartTimeout => (
            "It wasn't running in time",
            "The message says what it waited for. Raise the start timeout if the cluster is only slow.",
        ),
        FailureCode::RunTimeout => {
            ("It ran longer than it may", "Raise the run timeout, or find out why it is slower than usual.")
        }
        FailureCode::Queued => (
            "It waits to be launched, or in a queue",
            "Nothing is to be done: usually this takes milliseconds. A queue launches it when there is room; the message says what it \
             waits for. A later attempt waits for its pause. A pod with the reason SchedulingGated is held back by the controller that \
             owns the gate, such as Kueue.",
        ),
        FailureCode::Held => (
            "A user holds it",
            "Release it (sparkgate release) to have it launched. The message says who holds it, and why.",
        ),
        FailureCode::Starting => {
            ("Its pod is starting", "Nothing is to be done. The first pull of a large image takes minutes.")
        }
        FailureCode::ImagePull => (
            "The image can't be pulled",
            "Check spark.kubernetes.container.image, the registry, and spark.kubernetes.container.image.pullSecrets.",
        ),
        FailureCode::Unschedulable => (
            "No node, or no queue of the scheduler, has room for the driver",
            "Lower the driver's cores and memory, free or add nodes, check node selectors and tolerations.",
        ),
        FailureCode::ConfigMissing => (
            "A ConfigMap, Secret or volume that the pod refers to is missing, or the namespace itself",
            "Create it in the driver's namespace, or correct its name: the pod starts by itself. If the message names an encryption \
             key, an operator adds it to the gateway's key file.",
        ),
        FailureCode::ClusterUnavailable => (
            "The API server doesn't answer",
            "Nothing is to be done by users: it is launched when the cluster is back. Operators: see /readyz and the gateway's log.",
        ),
    }
}
