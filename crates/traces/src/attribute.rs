//! The names of all attributes: those of OpenTelemetry's semantic conventions, and our own, which begin with `sparkgate.`

/// The kind of an error: the class of an error of ours, an HTTP status, or a failure code.
pub const ERROR_TYPE: &str = "error.type";

pub const HTTP_REQUEST_METHOD: &str = "http.request.method";
pub const HTTP_RESPONSE_STATUS_CODE: &str = "http.response.status_code";
pub const HTTP_ROUTE: &str = "http.route";
/// The path of the request without its query.
pub const URL_PATH: &str = "url.path";

pub const DB_SYSTEM_NAME: &str = "db.system.name";
/// The SQLSTATE of a statement that failed.
pub const DB_RESPONSE_STATUS_CODE: &str = "db.response.status_code";

/// The service that a client span calls.
pub const PEER_SERVICE: &str = "peer.service";

pub const K8S_NAMESPACE_NAME: &str = "k8s.namespace.name";
pub const K8S_NODE_NAME: &str = "k8s.node.name";
pub const K8S_POD_NAME: &str = "k8s.pod.name";
pub const K8S_POD_UID: &str = "k8s.pod.uid";

/// The id of the request, as in the log and in `x-request-id`.
pub const REQUEST_ID: &str = "sparkgate.request.id";
pub const SUBMISSION_ID: &str = "sparkgate.submission.id";
pub const TENANT: &str = "sparkgate.tenant";
pub const ATTEMPT: &str = "sparkgate.attempt";
/// The number of attempts of an ended submission.
pub const ATTEMPTS: &str = "sparkgate.attempts";
/// The state that the work of the span led to.
pub const STATE: &str = "sparkgate.state";
pub const FAILURE_CODE: &str = "sparkgate.failure.code";
pub const EXIT_CODE: &str = "sparkgate.exit_code";
/// Whether a request got the submission of an earlier one with the same idempotency key.
pub const REPLAYED: &str = "sparkgate.replayed";
