"""The documents of the resource API.

Generated from openapi/sparkgate.json by `make python ARGS=generate`: don't edit this file.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from pydantic import Field

from sparkgate._base import Document, OpenEnum


class Advice(Document):
    """Advice of size, with its evidence."""

    property: str
    """The property that would change."""
    reason: str
    runs: list[str]
    """The ids of the runs that show it."""
    suggested: str | None = None
    """What it could be; absent if the runs don't tell."""


class AfterNodeLoss(Document):
    """Where the attempts run that follow one which the cluster ended: its node was lost or drained, or another pod replaced it."""

    node_selector: dict[str, str | None] | None = Field(None, alias="nodeSelector")
    """Node selectors of the driver and its executors. Each replaces the one that the submission has; null removes it."""


class ApiKey(Document):
    """An API key, without its text."""

    created_at: datetime = Field(..., alias="createdAt")
    created_by: str = Field(..., alias="createdBy")
    """The principal that created it."""
    expires_at: datetime | None = Field(None, alias="expiresAt")
    id: str
    """The public part of the key."""
    last_used_at: datetime | None = Field(None, alias="lastUsedAt")
    """When it was used last, accurate to five minutes."""
    name: str
    revoked_at: datetime | None = Field(None, alias="revokedAt")
    role: str
    tenant: str | None = None
    """The tenant of the key. A key of all tenants has none."""
    token: str | None = None
    """The key itself, only in the response to its creation."""


class ApiKeyList(Document):
    """The API keys that the caller may manage."""

    tokens: list[ApiKey]


class AppliedDefault(Document):
    key: str
    origin: str
    """
    `spark-defaults`, `lines/<line>`, `tenant` or `defaults/<name>`: set by the operator; `spark-submit`: set by Spark itself;
    `sparkgate`: the gateway's own labels.
    """
    value: str


class Change(Document):
    """A part of the request that has changed."""

    after: str | None = None
    """Its value in the run that failed."""
    before: str | None = None
    """Its value in the run that succeeded."""
    part: str


class ChangedSince(Document):
    """What has changed since a job last succeeded."""

    changes: list[Change]
    """The parts of the request that differ; empty if both requests are the same."""
    failure: str
    success: str


class ConnectSessionState(OpenEnum):
    """`OPENING`: its driver is being started; `READY`: clients can connect; `ENDED`."""

    OPENING = "OPENING"
    READY = "READY"
    ENDED = "ENDED"


class Cost(Document):
    """By the operator's present prices."""

    amount: float
    """Rounded to six digits after the point."""
    currency: str | None = None


class Driver(Document):
    """The location of the driver."""

    ip: str | None = None
    node: str | None = None
    pod: str
    """The pod's name."""


class Entry(Document):
    """Who did what, when and from where."""

    action: str
    """
    `submit`, `kill`, `killall`, `clear`, `create-key`, `revoke-key`, `create-webhook`, `rotate-webhook`, `replay-webhook`,
    `delete-webhook`, `hold`, `release`, `requeue`, `change-places`, `pause-queue`, `drain-queue`, `resume-queue`, `change-queue`,
    `kill-in-spark-ui`, `connect`, `sign-in` or `sign-out`.
    """
    address: str | None = None
    """The address of the client."""
    at: datetime
    detail: str | None = None
    id: int
    request_id: str | None = Field(None, alias="requestId")
    """The id of the request in the gateway's log."""
    subject: str
    """The principal."""
    subject_name: str | None = Field(None, alias="subjectName")
    """The name of the API key, if it is one. Not in the log of the audit."""
    submission: str | None = None
    tenant: str | None = None
    verdict: str
    """`allowed` or `denied`."""


class Executor(Document):
    """One executor of one attempt, as last seen in the cluster."""

    attempt: int
    created_at: datetime | None = Field(None, alias="createdAt")
    exit_code: int | None = Field(None, alias="exitCode")
    finished_at: datetime | None = Field(None, alias="finishedAt")
    id: int
    """Spark's executor id, the label `spark-exec-id`."""
    message: str | None = None
    node: str | None = None
    pod: str
    reason: str | None = None
    """One word: how the executor ended, or why it waits."""
    started_at: datetime | None = Field(None, alias="startedAt")
    state: str
    """UNKNOWN, PENDING, RUNNING, SUCCEEDED, FAILED or DELETED."""


class ExecutorCounts(Document):
    deleted: int
    failed: int
    pending: int
    running: int
    succeeded: int


class ExecutorList(Document):
    """A page of executors, ordered by attempt and id."""

    items: list[Executor]
    next: str | None = None
    """The `cursor` of the next page. The last page has none."""


class ExecutorPeak(Document):
    """The most that an executor used."""

    failed_tasks: int = Field(..., alias="failedTasks")
    id: str
    peak_heap_bytes: int = Field(..., alias="peakHeapBytes")
    peak_resident_bytes: int | None = Field(None, alias="peakResidentBytes")
    """Resident memory of its JVM and its Python processes, if `spark.executor.processTreeMetrics.enabled` is set."""
    tasks: int


class FailedStage(Document):
    """A stage that failed."""

    attempt: int
    """The stage's own attempt, from 0."""
    name: str
    reason: str
    """Why it failed, as Spark says it."""
    stage: int


class FailureClass(OpenEnum):
    """What kind of failure it is."""

    IMAGE = "image"
    CAPACITY = "capacity"
    CONFIGURATION = "configuration"
    APPLICATION = "application"
    INFRASTRUCTURE = "infrastructure"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    WAITING = "waiting"


class FailureCode(OpenEnum):
    """What failed: one word of a closed list."""

    IMAGE_PULL = "IMAGE_PULL"
    UNSCHEDULABLE = "UNSCHEDULABLE"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    CONFIG_MISSING = "CONFIG_MISSING"
    REFUSED = "REFUSED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    EVICTED = "EVICTED"
    NODE_LOST = "NODE_LOST"
    PREEMPTED = "PREEMPTED"
    POD_DELETED = "POD_DELETED"
    LOST = "LOST"
    APPLICATION_ERROR = "APPLICATION_ERROR"
    START_FAILED = "START_FAILED"
    KILLED_ON_REQUEST = "KILLED_ON_REQUEST"
    START_TIMEOUT = "START_TIMEOUT"
    RUN_TIMEOUT = "RUN_TIMEOUT"
    QUEUED = "QUEUED"
    HELD = "HELD"
    STARTING = "STARTING"
    CLUSTER_UNAVAILABLE = "CLUSTER_UNAVAILABLE"
    UNKNOWN = "UNKNOWN"


class FieldError(Document):
    """An invalid part of the request."""

    detail: str
    parameter: str | None = None
    """The name of the query parameter or header."""
    pointer: str | None = None
    """The field of the body, as a JSON pointer (RFC 6901) in a URI fragment."""


class FileEntry(Document):
    """A file of a tenant."""

    created_at: datetime = Field(..., alias="createdAt")
    created_by: str = Field(..., alias="createdBy")
    """The principal that uploaded it first."""
    expires_at: datetime | None = Field(None, alias="expiresAt")
    """When it is deleted if no submission uses it until then."""
    last_used_at: datetime = Field(..., alias="lastUsedAt")
    """When it was uploaded last, or when the last submission that used it ended."""
    name: str | None = None
    """The name under which a submission used it last. A file is its content, and has no name of its own."""
    sha256: str
    """The SHA-256 of its content, in hex."""
    size: int
    """Its size in bytes."""
    submissions: int
    """The number of live submissions that use it."""


class FileList(Document):
    """A page of files, the newest first."""

    items: list[FileEntry]
    next: str | None = None
    """The `cursor` of the next page. The last page has none."""
    tenant: str
    """The tenant that they belong to."""


class Hold(Document):
    at: datetime
    by: str
    """The principal."""
    reason: str | None = None


class Issuer(Document):
    """An OIDC issuer with a client for the command line."""

    client_id: str = Field(..., alias="clientId")
    issuer: str
    name: str


class Late(Document):
    """The current attempt takes longer than expected."""

    expected_seconds: int = Field(..., alias="expectedSeconds")
    """The duration that was expected. Without `runs`, the request names it."""
    runs: int | None = None
    """Of how many earlier runs of the same name it is the median. Such a run is late after three times the median."""
    since: datetime
    """When that was reported."""


class Limits(Document):
    """Time limits in seconds, after which the submission is killed. Limits that aren't set are absent."""

    kill_grace_seconds: int | None = Field(None, alias="killGraceSeconds")
    run_seconds: int | None = Field(None, alias="runSeconds")
    start_seconds: int | None = Field(None, alias="startSeconds")


class Login(Document):
    """The issuers of tokens that the gateway accepts."""

    issuers: list[Issuer]


class MaxRetries(Document):
    """The most retries after failures, by kind of failure."""

    application: int | None = None
    """Retries after failures of the application."""
    capacity: int | None = None
    """Retries after the cluster had no room for the driver within its start timeout."""
    infrastructure: int | None = None
    """Retries after failures that the application didn't cause."""
    quota: int | None = None
    """Retries after a quota had no room for the driver."""


class MemoryGrowth(Document):
    """More memory for later attempts."""

    factor: float | None = None
    """What the memory is multiplied by each time: more than 1, at most 10. 1.5 by default."""
    max: str | None = None
    """The most memory of a pod, as Spark writes sizes."""
    retries: int | None
    """The most attempts that follow because memory ran out. They count against no other budget."""


class NewHold(Document):
    """Why submissions are held."""

    reason: str | None = None
    """For people."""


class NewPlace(Document):
    """Where a submission is to wait. One of the fields is required."""

    priority: int | None = None
    """Its priority there; without it, that of the other queue, or its present one."""
    queue: str | None = None
    """Another queue that its tenant may use; without it, its present one."""


class NewSession(Document):
    """A session to open. Every field is optional."""

    driver_pod_template: Any | None = Field(None, alias="driverPodTemplate")
    """The template of the driver's pod: as for a submission."""
    environment_variables: dict[str, str] | None = Field(None, alias="environmentVariables")
    executor_pod_template: Any | None = Field(None, alias="executorPodTemplate")
    """The template of executors' pods."""
    idle_timeout_seconds: int | None = Field(None, alias="idleTimeoutSeconds")
    """End the session after so long without a request of a client."""
    labels: dict[str, str] | None = None
    """Labels of its submission."""
    name: str | None = None
    """Its name among the caller's live sessions, or among the shared ones of its tenant: `default` without it. Up to 63 letters, digits, hyphens, underscores and dots."""
    priority: int | None = None
    """Its priority among the submissions of its tenant in that queue."""
    queue: str | None = None
    """The queue that has to admit it."""
    run_timeout_seconds: int | None = Field(None, alias="runTimeoutSeconds")
    """End it this long after its driver started, whether it is used or not."""
    shared: bool | None = None
    """Members of the tenant that may submit may use it, too, if the tenant's operator permits that."""
    spark_properties: dict[str, str] | None = Field(None, alias="sparkProperties")
    """Properties of its driver. Without executors or dynamic allocation in them, it allocates up to ten executors dynamically."""
    spark_version: str | None = Field(None, alias="sparkVersion")
    """The Spark release, or its line: 4.0 or later."""
    start_timeout_seconds: int | None = Field(None, alias="startTimeoutSeconds")
    """End it if its driver isn't running this long after it was queued."""


class ObjectList(Document):
    """A Kubernetes `List`."""

    api_version: str = Field(..., alias="apiVersion")
    items: list[dict[str, Any]]
    """Kubernetes objects, in the order of their creation."""
    kind: str


class PlaceAction(OpenEnum):
    """What becomes of the submissions."""

    HOLD = "hold"
    RELEASE = "release"
    MOVE = "move"


class PlaceRefusal(Document):
    """A submission that stays where it is."""

    id: str
    reason: str


class PlannedSubmission(Document):
    labels: dict[str, str]
    limits: Limits | None = None
    name: str
    namespace: str
    retries: MaxRetries | None = None
    spark_version: str = Field(..., alias="sparkVersion")


class PodChange(Document):
    """What a pod got at the launch."""

    annotations: dict[str, str] | None = {}
    labels: dict[str, str] | None = {}
    node_selector: dict[str, str] | None = Field({}, alias="nodeSelector")
    tolerations: list[dict[str, Any]] | None = []
    """Tolerations, as Kubernetes has them."""


class PodEvent(Document):
    """An event of Kubernetes about a pod, with the number of its occurrences."""

    at: datetime | None = None
    count: int
    message: str
    reason: str
    type: str
    """`Normal` or `Warning`."""


class Problem(Document):
    """The body of a problem (RFC 9457, `application/problem+json`)."""

    code: str
    """The last part of `type`."""
    detail: str
    errors: list[FieldError] | None = None
    instance: str
    """The path of the request."""
    request_id: str = Field(..., alias="requestId")
    """The id of the request in the gateway's log."""
    status: int
    title: str
    type: str
    """The kind of problem; `docs/reference/problems.md` lists all kinds."""


class QueueEstimate(Document):
    """An estimate from the history of the tenant in the queue."""

    admissions: int
    """The number of admissions that it is computed from, and since when they happened."""
    error_seconds: int = Field(..., alias="errorSeconds")
    """The standard error of the seconds."""
    seconds: int
    since: datetime


class QueuePlace(Document):
    """Where a submission stands that waits in its queue, or who holds it. `waiting` has the reason in words."""

    ahead: int | None = None
    """Number of submissions of its tenant that are admitted before it. Absent if it is held, or if there are more than ten thousand."""
    estimate: QueueEstimate | None = None
    held: Hold | None = None


class QueueState(OpenEnum):
    """The state of a queue."""

    OPEN = "open"
    PAUSED = "paused"
    DRAINING = "draining"


class QueueStateChange(Document):
    at: datetime
    by: str
    """The principal."""
    reason: str | None = None


class Resources(Document):
    """Amounts of resources. Absent ones are unlimited in caps, and else zero."""

    cores: float | None = None
    extended: dict[str, int] | None = None
    """Extended resources by name, such as `nvidia.com/gpu`."""
    memory_bytes: int | None = Field(None, alias="memoryBytes")
    pods: int | None = None
    """Drivers and executors."""
    submissions: int | None = None


class Restart(OpenEnum):
    """Which ends of a driver are followed by another attempt."""

    NEVER = "never"
    ON_FAILURE = "onFailure"
    ALWAYS = "always"


class Role(OpenEnum):
    """A role in a tenant (docs/operate/access.md)."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"


class RunEnd(Document):
    """When a run ended."""

    at: datetime
    id: str


class RunFailure(Document):
    """Why a run failed."""

    code: str
    message: str


class ServedSparkVersion(Document):
    """A Spark release."""

    image: str | None = None
    """The image of submissions that name none, if the release has one of its own."""
    line: str
    """The line, which selects it as well."""
    version: str


class SparkExecutors(Document):
    """What executors used. Memory is in bytes, and the heap in use has garbage in it."""

    busy: float | None = None
    """The share of the time of their cores in which tasks ran."""
    count: int
    """How many there were."""
    driver_peak_heap_bytes: int = Field(..., alias="driverPeakHeapBytes")
    """The same of the driver."""
    garbage_collection: float | None = Field(None, alias="garbageCollection")
    """The share of the time of tasks that the garbage collection took."""
    largest: list[ExecutorPeak]
    """Those with the most heap in use."""
    peak_heap_bytes: int = Field(..., alias="peakHeapBytes")
    """The most heap that one of them had in use."""


class SparkJob(Document):
    """A job of a driver."""

    completed_tasks: int = Field(..., alias="completedTasks")
    id: int
    name: str
    status: str
    """`RUNNING`, `SUCCEEDED`, `FAILED` or `UNKNOWN`."""
    tasks: int


class SparkJobCounts(Document):
    """Number of jobs in each state."""

    failed: int
    running: int
    succeeded: int


class SparkStageCounts(Document):
    """Number of stages in each state."""

    active: int
    completed: int
    failed: int
    skipped: int


class SparkTaskCounts(Document):
    """Number of tasks in each state."""

    active: int
    completed: int
    failed: int
    killed: int


class SparkVersionList(Document):
    """The Spark releases that the gateway serves, in their order."""

    default: str
    """The release of submissions for which nothing else selects one. A tenant may have another default (`GET /v1/me`)."""
    items: list[ServedSparkVersion]


class StartupStepName(OpenEnum):
    """`queued`; `admitted` by its queue; `created`: all objects of the driver exist; `scheduled`: a node accepted the pod; `started`: the image is there, and the driver's container runs; `executorRequested`: the SparkContext is up, and has asked for an executor; `executorStarted`; `firstJob` was submitted."""

    QUEUED = "queued"
    ADMITTED = "admitted"
    CREATED = "created"
    SCHEDULED = "scheduled"
    STARTED = "started"
    EXECUTOR_REQUESTED = "executorRequested"
    EXECUTOR_STARTED = "executorStarted"
    FIRST_JOB = "firstJob"


class StoredFile(Document):
    """An uploaded file."""

    sha256: str
    """The SHA-256 of its content, in hex."""
    size: int
    """Its size in bytes."""
    tenant: str
    """The tenant that it belongs to."""


class SubmissionState(OpenEnum):
    """`QUEUED → LAUNCHING → PENDING → RUNNING →` one of `FINISHED`, `FAILED`, `KILLED`, `ERROR`, `LOST`; `KILLING` precedes `KILLED`."""

    QUEUED = "QUEUED"
    LAUNCHING = "LAUNCHING"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    KILLING = "KILLING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"
    ERROR = "ERROR"
    LOST = "LOST"


class TenantInQueue(Document):
    held: int
    running: Resources
    waiting: int


class TenantRole(Document):
    """The role of the caller in a tenant."""

    default_spark_version: str | None = Field(None, alias="defaultSparkVersion")
    """The Spark release of its submissions that select none."""
    name: str
    namespaces: list[str]
    """The tenant's namespaces. Empty if it has all that the gateway serves."""
    role: str
    spark_versions: list[str] = Field(..., alias="sparkVersions")
    """The Spark releases that its submissions may use."""


class Used(Document):
    """Reserved cores and memory, multiplied by the time for which they were reserved."""

    core_seconds: float = Field(..., alias="coreSeconds")
    memory_byte_seconds: float = Field(..., alias="memoryByteSeconds")


class UsualFailure(Document):
    """The most frequent failure of a job."""

    code: str
    count: int
    message: str | None = None
    """The message of the newest one."""


class WebhookCoverage(OpenEnum):
    """Whose submissions an existing webhook is for."""

    OWN = "own"
    TENANT = "tenant"
    INSTALLATION = "installation"


class WebhookDeliveryStatus(OpenEnum):
    """Whether a delivery is to be sent, arrived, or was given up."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class WebhookFilter(Document):
    """Which changes are sent. All criteria have to match."""

    labels: dict[str, str] | None = {}
    """All labels have to match."""
    name: str | None = None
    """Prefix of the name."""
    namespace: str | None = None
    owner: str | None = None
    states: list[SubmissionState] | None = []
    """Any of these states."""


class WebhookFormat(OpenEnum):
    """The format of messages."""

    CLOUDEVENTS = "cloudevents"
    OPENLINEAGE = "openlineage"


class WebhookReplay(Document):
    """How many deliveries were queued again."""

    deliveries: int


class WebhookSubmissions(OpenEnum):
    """Whose submissions a webhook is for."""

    OWN = "own"
    TENANT = "tenant"


class Why(Document):
    """Why a submission failed, or why it isn't running yet."""

    class_: FailureClass = Field(..., alias="class")
    code: FailureCode
    events: list[PodEvent] | None = None
    """Kubernetes' events about the pod. Not in lists."""
    exit_code: int | None = Field(None, alias="exitCode")
    """Exit code of the driver's container."""
    log_tail: str | None = Field(None, alias="logTail")
    """The end of what the application wrote, from its exception on; of the whole log, if it wrote nothing else. Not in lists."""
    message: str
    """A human-readable explanation."""
    reason: str | None = None
    """The reason that Kubernetes gives, if any."""
    signal: str | None = None
    """The signal that the exit code stands for, if any."""


class AuditList(Document):
    """Entries of the audit, the oldest first."""

    entries: list[Entry]
    next: int
    """The `after` of the next page, which may be empty yet."""


class ChangedPlaces(Document):
    """What became of the submissions that match."""

    changed: int
    """Number of submissions that this request changed, and their ids."""
    ids: list[str]
    next: str | None = None
    """The `cursor` of the next request, if there may be more."""
    refusals: list[PlaceRefusal]
    refused: int
    """Number of submissions that can't be changed in this way, and why."""


class ConnectSession(Document):
    """A session of Spark Connect."""

    created_at: datetime = Field(..., alias="createdAt")
    id: str
    """The id of the session, and of its submission."""
    idle_at: datetime | None = Field(None, alias="idleAt")
    """When it will be ended, unless a client uses it. Only while its driver runs."""
    idle_timeout_seconds: int = Field(..., alias="idleTimeoutSeconds")
    """It is ended after so long without a request."""
    last_used_at: datetime | None = Field(None, alias="lastUsedAt")
    """The last request of a client, accurate to about ten seconds."""
    message: str | None = None
    """What it waits for, or why it ended."""
    name: str
    namespace: str
    principal: str
    """The principal that opened it: the only one that can connect to it, unless it is shared."""
    shared: bool
    """Members of its tenant may connect to it, too."""
    spark_version: str = Field(..., alias="sparkVersion")
    state: ConnectSessionState
    tenant: str
    url: str | None = None
    """The connection string of a client, without credentials: add `;token=…`. Absent once it has ended."""


class ConnectSessionList(Document):
    """Sessions, the newest first."""

    items: list[ConnectSession]


class Event(Document):
    """One change of a submission's state."""

    at: datetime
    attempt: int
    message: str | None = None
    previous: SubmissionState | None = None
    reason: str | None = None
    sequence: int | None = None
    """
    The event's position in the order of all events, for `after` and `Last-Event-ID`. It is assigned shortly after the
    commit, so the newest events may not have one yet.
    """
    state: SubmissionState
    submission_id: str = Field(..., alias="submissionId")


class EventList(Document):
    """Events, the oldest first."""

    items: list[Event]
    next: str | None = None
    """
    The `after` of the next page. The last page of one submission's events has none; a page of all events always has
    one.
    """


class JobStartupStep(Document):
    """How long a step of a start takes, since the step before. Times of Kubernetes are accurate to a second."""

    median_seconds: float = Field(..., alias="medianSeconds")
    p90_seconds: float = Field(..., alias="p90Seconds")
    """The time that nine of ten runs don't exceed."""
    runs: int
    """The runs of which it is known."""
    step: StartupStepName


class LaunchChange(Document):
    """What a feature changed in the objects of an attempt at its launch: why the driver isn't what the request says."""

    by: str | None = ""
    """
    The feature: `kueue` put the places and the number of executors that Kueue admitted on the driver, and `memoryGrowth` gave more
    memory to what ran out of it in an earlier attempt, `afterNodeLoss` moved it to other nodes, and `lineage` named the run of the attempt to `OpenLineage`'s listener.
    """
    driver: PodChange | None = None
    driver_resources: dict[str, str] | None = Field({}, alias="driverResources")
    """Amounts of the driver's container by resource."""
    executor: PodChange | None = None
    node_selector: dict[str, str | None] | None = Field({}, alias="nodeSelector")
    """Node selectors of the driver and its executors that replace those of the request; null: removed."""
    properties: dict[str, str] | None = {}
    """Properties of the driver process that replace those of the request."""


class Me(Document):
    """The caller of a request, and what it may do."""

    expires_at: datetime | None = Field(None, alias="expiresAt")
    """When the credentials end."""
    groups: list[str]
    subject: str
    """`<provider>:<name>`."""
    tenants: list[TenantRole]
    """The tenants in which the caller has a role."""


class NewApiKey(Document):
    """What a new API key is to be."""

    expires_in_seconds: int | None = Field(None, alias="expiresInSeconds")
    """How long the key is valid; without it, until it is revoked."""
    name: str
    """A name for people; it needn't be unique."""
    role: Role
    """At most the caller's own role."""
    tenant: str | None = None
    """The tenant in which the key has its role; all tenants without it."""


class NewQueueState(Document):
    """The state that a queue is to have."""

    reason: str | None = None
    """Why, for people."""
    state: QueueState


class NewWebhook(Document):
    """What a new webhook is to be."""

    bearer_token: str | None = Field(None, alias="bearerToken")
    """What the receiver gets as `Authorization: Bearer`. It is never shown."""
    expires_in_seconds: int | None = Field(None, alias="expiresInSeconds")
    """How long changes are sent; without it, until the webhook is deleted."""
    filter: WebhookFilter | None = None
    format: WebhookFormat | None = None
    secret: str | None = None
    """A signing secret of the client's own: `whsec_`, and 24 to 64 bytes as base64. Without it, one is generated."""
    submissions: WebhookSubmissions | None = None
    tenant: str | None = None
    """The tenant whose submissions it is for; needed if the caller could mean several."""
    url: str
    """Where messages are sent."""


class PlaceFilter(Document):
    """Which submissions change. A submission must match all of the fields, of which there must be one at least."""

    client_id: str | None = Field(None, alias="clientId")
    created_after: str | None = Field(None, alias="createdAfter")
    """Only submissions that were accepted at or after this time (RFC 3339), or this date (its begin in UTC)."""
    created_before: str | None = Field(None, alias="createdBefore")
    """Only submissions that were accepted before this time (RFC 3339), or this date (its begin in UTC)."""
    id: str | None = None
    """Prefix of the id."""
    labels: dict[str, str] | None = {}
    """All of them must match."""
    name: str | None = None
    """Prefix of the name."""
    namespace: str | None = None
    owner: str | None = None
    queue: str | None = None
    spark_version: str | None = Field(None, alias="sparkVersion")
    """A Spark release such as `4.1.4`, or a line, `4.1`."""
    state: list[SubmissionState] | None = []
    """Any of these states."""
    tenant: str | None = None


class Plan(Document):
    """The result of a dry run. The id in it is not reserved and never used."""

    defaults: list[AppliedDefault]
    """What the driver gets in addition to what the request sets, each with its origin."""
    manifest: ObjectList
    """The Kubernetes objects, in the order of their creation."""
    submission: PlannedSubmission
    """The submission as the gateway understands the request."""
    warnings: list[str] | None = None
    """Properties that are probably misspelt, each with the one that was probably meant."""


class Queue(Document):
    """A queue."""

    caps: Resources
    """What its submissions may use together. Absent amounts are unlimited."""
    changed: QueueStateChange | None = None
    fair_share: float = Field(..., alias="fairShare")
    """Its part of the capacity by its weight. Others are lent what it doesn't use."""
    held: int
    name: str
    running: Resources
    """What its admitted submissions reserve."""
    state: QueueState
    """`open` without another state."""
    tenants: dict[str, TenantInQueue]
    """The same by tenant, for the tenants that the caller may read."""
    waiting: int
    """Number of submissions that wait, without held ones."""
    weight: int


class QueueList(Document):
    """The queues that the caller's tenants may use."""

    queues: list[Queue]


class Run(Document):
    """A run of a job."""

    attempt: int
    created_at: datetime = Field(..., alias="createdAt")
    failure: RunFailure | None = None
    finished_at: datetime | None = Field(None, alias="finishedAt")
    id: str
    principal: str
    """The caller that submitted it."""
    seconds: float | None = None
    """From the start of the driver to its end."""
    started_at: datetime | None = Field(None, alias="startedAt")
    state: SubmissionState


class SparkSummary(Document):
    """What the driver said last of its jobs and stages, by Spark's own REST API. It may be older than the end of the driver."""

    attempt: int
    """The attempt whose driver said it."""
    executors: SparkExecutors | None = None
    failed_stages: list[FailedStage] = Field(..., alias="failedStages")
    """The newest failed stages, the newest first."""
    jobs: SparkJobCounts
    latest_jobs: list[SparkJob] = Field(..., alias="latestJobs")
    """The newest jobs, the newest first."""
    read_at: datetime = Field(..., alias="readAt")
    stages: SparkStageCounts
    tasks: SparkTaskCounts


class StartupStep(Document):
    """A step of an attempt's start. Times of Kubernetes are accurate to a second."""

    at: datetime
    seconds: float
    """Seconds since the step before."""
    step: StartupStepName


class SubmissionWebhook(Document):
    """A webhook of this submission only."""

    format: WebhookFormat | None = None
    secret: str
    """The signing secret: `whsec_`, and 24 to 64 bytes as base64."""
    states: list[SubmissionState] | None = []
    """Only these states; all by default."""
    url: str
    """Where messages are sent."""


class Usage(Document):
    """What drivers and executors used."""

    cost: Cost | None = None
    driver: Used
    estimated: Used | None = None
    executors: Used
    total: Used


class UsageGroup(Usage):
    """The usage of one group."""

    group: dict[str, str | None]
    """The value of each part of `groupBy`; null for submissions without that label."""


class UsageReport(Document):
    """What the submissions of a caller used in a range of days."""

    group_by: list[str] = Field(..., alias="groupBy")
    items: list[UsageGroup]
    """One for each group that used something, in the order of its values; none if `groupBy` is empty."""
    since: date
    """The first day, in UTC."""
    total: Usage
    """The sum over all groups."""
    until: date
    """The first day that isn't included."""


class Webhook(Document):
    """A webhook, without its secret."""

    created_at: datetime = Field(..., alias="createdAt")
    created_by: str | None = Field(None, alias="createdBy")
    """The principal that created it. Absent if it is that of the installation, which a setting of the gateway creates."""
    expires_at: datetime | None = Field(None, alias="expiresAt")
    """Later changes aren't sent, and the webhook is deleted a week later."""
    filter: WebhookFilter
    format: WebhookFormat
    id: str
    previous_secret_until: datetime | None = Field(None, alias="previousSecretUntil")
    """Until then, messages are signed with the previous secret, too."""
    secret: str | None = None
    """The secret that signs messages, only in the response that creates it."""
    submission_id: str | None = Field(None, alias="submissionId")
    """The only submission whose changes are sent, if its request named the webhook."""
    submissions: WebhookCoverage
    tenant: str | None = None
    """The tenant whose submissions it is for. Absent if it is that of the installation."""
    url: str


class WebhookDelivery(Document):
    """What became of sending one state change to one webhook."""

    attempt: int
    ended_at: datetime | None = Field(None, alias="endedAt")
    """When it arrived or was given up."""
    error: str | None = None
    """Why the last try failed."""
    http_status: int | None = Field(None, alias="httpStatus")
    """The status of the receiver's last response."""
    id: str
    next_try_at: datetime | None = Field(None, alias="nextTryAt")
    """When it is tried again, if it is pending."""
    queued_at: datetime = Field(..., alias="queuedAt")
    sequence: int
    """The event's position in the order of all events."""
    state: SubmissionState
    status: WebhookDeliveryStatus
    submission_id: str = Field(..., alias="submissionId")
    tries: int
    """How often it was tried."""


class WebhookDeliveryList(Document):
    """A page of deliveries, the newest first."""

    items: list[WebhookDelivery]
    next: str | None = None
    """The `cursor` of the next page. The last page has none."""


class WebhookList(Document):
    """The webhooks that the caller may manage."""

    items: list[Webhook]


class Attempt(Document):
    """One attempt to run the application, with its own driver pod."""

    attempt: int
    exit_code: int | None = Field(None, alias="exitCode")
    failure: Why | None = None
    finished_at: datetime | None = Field(None, alias="finishedAt")
    launch_changes: list[LaunchChange] | None = Field(None, alias="launchChanges")
    """What its launch changed in its objects, such as the nodes that a queue of Kueue assigned."""
    node: str | None = None
    pod: str | None = None
    """The driver pod's name, once it is known."""
    queued_at: datetime = Field(..., alias="queuedAt")
    started_at: datetime | None = Field(None, alias="startedAt")
    state: SubmissionState


class AttemptList(Document):
    """All attempts, in ascending order."""

    items: list[Attempt]


class AttemptUsage(Usage):
    """What one attempt used."""

    attempt: int


class Job(Document):
    """A job: all submissions of one name in one tenant. Its figures are those of the runs in `runs`."""

    last_failure: RunEnd | None = Field(None, alias="lastFailure")
    last_success: RunEnd | None = Field(None, alias="lastSuccess")
    median_seconds: float | None = Field(None, alias="medianSeconds")
    """The median duration of successful runs, from the start of the driver to its end, in seconds."""
    name: str
    next_expected_at: datetime | None = Field(None, alias="nextExpectedAt")
    """
    When the next run is expected. Only if four of five times between the runs are within a tenth, or a minute, of their median, and there
    are at least five.
    """
    p90_seconds: float | None = Field(None, alias="p90Seconds")
    """The duration that nine of ten successful runs don't exceed."""
    runs: list[Run]
    """The last runs, the newest first: 10 in the list of jobs, and 100 in the response to `GET /v1/jobs/{job}`."""
    success_rate: float | None = Field(None, alias="successRate")
    """The share of runs that succeeded, of those that ended without being killed."""
    tenant: str
    usual_failure: UsualFailure | None = Field(None, alias="usualFailure")


class JobList(Document):
    """A page of jobs, the latest run first."""

    items: list[Job]
    next: str | None = None
    """The `cursor` of the next page. The last page has none."""


class JobStartup(Document):
    """How long the starts of the last 100 runs of a job took."""

    runs: int
    """The runs whose driver started. Of a run with several attempts, the last one counts."""
    steps: list[JobStartupStep]
    """Each step that is known of one run at least. The pause before a retry counts nowhere."""


class NewPlaces(Document):
    """A change of submissions that wait."""

    action: PlaceAction
    cursor: str | None = None
    """`next` of the answer before, with an otherwise equal request."""
    filter: PlaceFilter
    priority: int | None = None
    """Of `move`: the priority there; without it, that of the other queue, or their present ones."""
    queue: str | None = None
    """Of `move`: another queue; without it, their present ones."""
    reason: str | None = None
    """Of `hold`: why, for people."""


class NewSubmission(Document):
    """
    The application to run. Fields of Spark's `CreateSubmissionRequest` keep their names. Every field is optional, except
    those that the application needs.
    """

    after_node_loss: AfterNodeLoss | None = Field(None, alias="afterNodeLoss")
    app_args: list[str] | None = Field(None, alias="appArgs")
    app_resource: str | None = Field(None, alias="appResource")
    """The application's jar, Python or R file: a URI that the driver can read."""
    client_id: str | None = Field(None, alias="clientId")
    """
    The client's own id of the submission, such as a UUID: at most 255 bytes. If another submission of the tenant has it, the
    request is refused with 409. `GET /v1/submissions?clientId=` finds it.
    """
    client_spark_version: str | None = Field(None, alias="clientSparkVersion")
    """Accepted for compatibility with Spark's protocol; it has no effect."""
    driver_pod_template: Any | None = Field(None, alias="driverPodTemplate")
    """
    The template of the driver's pod: a pod as a JSON object, a pod as a string of YAML, or the name of a template
    that the gateway's operator provides.
    """
    environment_variables: dict[str, str] | None = Field(None, alias="environmentVariables")
    executor_pod_template: Any | None = Field(None, alias="executorPodTemplate")
    """The template of executors' pods, in the same three forms."""
    expected_duration_seconds: int | None = Field(None, alias="expectedDurationSeconds")
    """
    How long a run takes as a rule. A run that takes longer goes on, and is reported: by an event and a message to webhooks with the reason
    `Late`, and in `late`. Without it, runs are late after three times the median of the last runs of their name.
    """
    kill_grace_seconds: int | None = Field(None, alias="killGraceSeconds")
    """Time from SIGTERM to SIGKILL when the submission is killed."""
    labels: dict[str, str] | None = None
    """Labels to filter submissions by, in Kubernetes' syntax; at most 32."""
    main_class: str | None = Field(None, alias="mainClass")
    max_retries: MaxRetries | None = Field(None, alias="maxRetries")
    memory_growth: MemoryGrowth | None = Field(None, alias="memoryGrowth")
    name: str | None = None
    """`spark.app.name`."""
    priority: int | None = None
    """Its priority among the submissions of its tenant in that queue."""
    proxy_user: str | None = Field(None, alias="proxyUser")
    """The user that the application impersonates: `--proxy-user`."""
    queue: str | None = None
    """The queue that has to admit the submission: one of `GET /v1/queues`. Without it, the default queue of the tenant, if it has one."""
    restart: Restart | None = None
    run_timeout_seconds: int | None = Field(None, alias="runTimeoutSeconds")
    """Kill the submission if it is still running this long after it started."""
    spark_properties: dict[str, str] | None = Field(None, alias="sparkProperties")
    spark_version: str | None = Field(None, alias="sparkVersion")
    """
    The Spark release, such as `4.1.4`, or its line, `4.1`: one of `GET /v1/spark-versions`. Without it, the default of the
    tenant or the gateway.
    """
    start_timeout_seconds: int | None = Field(None, alias="startTimeoutSeconds")
    """Kill the submission if it isn't running this long after it was queued."""
    unique_name: bool | None = Field(None, alias="uniqueName")
    """Refuse the request with 409 if a live submission of the same namespace that also set `uniqueName` has this name."""
    webhooks: list[SubmissionWebhook] | None = None
    """Where the state changes of this submission are sent; at most 4."""


class SubmissionForm(Document):
    """A submission with its files."""

    file: list[bytes]
    """The files that the request names, each part with its file name."""
    request: NewSubmission
    """The first part."""


class SubmissionUsage(Usage):
    """What one submission used, up to the last full minute while it runs."""

    attempts: list[AttemptUsage]
    """The same for each attempt whose pods reserved something."""


class JobDetails(Job):
    """A job with what its runs tell about the next one."""

    advice: list[Advice]
    """What its successful runs advise about its size. It is never carried out."""
    changed_since_success: ChangedSince | None = Field(None, alias="changedSinceSuccess")
    startup: JobStartup
    """How long the starts of its last runs took."""


class Submission(Document):
    """A submission with its state."""

    application_id: str = Field(..., alias="applicationId")
    """`spark.app.id` of the current attempt."""
    attempt: int
    """The number of the current attempt, from 1."""
    client_id: str | None = Field(None, alias="clientId")
    """The client's own id, unique in the tenant."""
    created_at: datetime = Field(..., alias="createdAt")
    driver: Driver
    executors: ExecutorCounts
    """Number of executors in each state, over all attempts."""
    exit_code: int | None = Field(None, alias="exitCode")
    """Exit code of the driver's container, once it has ended and the code is known."""
    failure: Why | None = None
    finished_at: datetime | None = Field(None, alias="finishedAt")
    id: str
    labels: dict[str, str]
    late: Late | None = None
    launch_changes: list[LaunchChange] | None = Field(None, alias="launchChanges")
    """
    What the launch of the current attempt changed in its objects: why the driver isn't what the request says. Only in the response to
    `GET /v1/submissions/{id}`, and only if something changed.
    """
    limits: Limits | None = None
    name: str
    """`spark.app.name`"""
    namespace: str
    owner: str
    """
    The user that it is recorded under: the proxy user or `SPARK_USER` of the request, else the name of the caller; without
    authentication the gateway's own user.
    """
    principal: str
    """The caller that submitted it, as the gateway authenticated it."""
    principal_name: str | None = Field(None, alias="principalName")
    """The name of the API key that it was submitted with. Only in lists and in the response to `GET /v1/submissions/{id}`."""
    priority: int | None = None
    """Its priority among the submissions of its tenant in that queue."""
    queue: str | None = None
    """The queue that admits it, if there is one."""
    queue_place: QueuePlace | None = Field(None, alias="queuePlace")
    retries: MaxRetries | None = None
    spark: SparkSummary | None = None
    spark_ui: str | None = Field(None, alias="sparkUi")
    """
    Where the Spark UI is: a path of this gateway until the submission has ended, and then a URL of the operator's History Server. Only
    in the response to `GET /v1/submissions/{id}`, and only if there is one.
    """
    spark_version: str = Field(..., alias="sparkVersion")
    started_at: datetime | None = Field(None, alias="startedAt")
    startup: list[StartupStep] | None = None
    """The steps of the current attempt's start that have happened, in order. Only in the response to `GET /v1/submissions/{id}`."""
    state: SubmissionState
    tenant: str
    """The tenant that it belongs to; `default` without tenants."""
    usage: SubmissionUsage | None = None
    waiting: Why | None = None
    warnings: list[str] | None = None
    """
    Properties that are probably misspelt, each with the one that was probably meant. Only in the response to a request that
    submits.
    """


class SubmissionList(Document):
    """A page of submissions, the newest first."""

    items: list[Submission]
    next: str | None = None
    """The `cursor` of the next page. The last page has none."""
    total: int | None = None
    """Number of all matches, if requested."""
