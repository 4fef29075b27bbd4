"""What to do about a failure. Generated from docs/reference/failures.md: don't edit this file."""

REMEDIES = {
    "APPLICATION_ERROR": "message has the exception, if the log has one, or else the last line that the application wrote. Read logTail, then the whole log with sparkgate logs ID. Exit code 137 (SIGKILL) without OUT_OF_MEMORY is often memory, too",
    "OUT_OF_MEMORY": "raise spark.driver.memory, or spark.driver.memoryOverhead for memory outside the heap, such as Python's; collect less to the driver; or set memoryGrowth, and the next attempt has more",
    "START_FAILED": "check the image's entry point and its architecture, and that it runs as the pod's user",
    "EVICTED": "set maxRetries.infrastructure; for evictions by disk or memory, check the driver's requests",
    "NODE_LOST": "set maxRetries.infrastructure; don't run drivers on nodes that may be reclaimed",
    "PREEMPTED": "set maxRetries.infrastructure, or give drivers a priority class in a pod template",
    "LOST": "check the application's own output: it may have succeeded. Keep the finalizer on",
    "POD_DELETED": "find out which one: the API server's audit log has it. Kill through Sparkgate instead",
    "UNKNOWN": "see reason and events, and the node's kubelet",
    "REFUSED": "message is theirs: change the request, or what it violates. The same request would be refused again. With the reason PolicyViolation, the policy of the tenant has changed since the submission was accepted. With PodChanged, a mutating webhook added to the pod what would let its node run the driver twice: the message names the field; let the webhook leave out Spark's drivers",
    "QUOTA_EXCEEDED": "message names the quota and the sum: lower the driver's cores and memory, or raise the quota",
    "UNSCHEDULABLE": "submit again when there is room, ask for less, or let it wait longer",
    "KILLED_ON_REQUEST": "nothing",
    "START_TIMEOUT": "message says what it waited for: see that code below; raise the start timeout if the cluster is only slow",
    "RUN_TIMEOUT": "raise the timeout, or find out why it is slower than usual",
}
