//! The closed list of problems. `docs/reference/problems.md` has the same table: a test compares them.

macro_rules! problems {
    ($($code:ident: $name:literal, $status:literal, $retry:ident, $title:literal, $remedy:literal;)*) => {
        /// A kind of problem: a stable name, the last part of the problem's `type`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($code,)*
        }

        impl Code {
            /// All kinds, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            fn row(self) -> Row {
                match self {
                    $(Self::$code => Row {
                        name: $name,
                        status: $status,
                        retry: Retry::$retry,
                        title: $title,
                        #[cfg(test)]
                        remedy: $remedy,
                    },)*
                }
            }
        }
    };
}

// Each with its status, when the same request may succeed, its title, and what to do about it.
problems! {
    InvalidJson: "invalid-json", 400, Never, "The body is not a JSON object",
        "send a JSON object; `detail` says where parsing failed";
    InvalidRequest: "invalid-request", 400, Never, "The request can't be run as it is",
        "correct the fields that `errors` lists";
    InvalidParameter: "invalid-parameter", 400, Never, "A parameter can't be used",
        "correct it; unknown parameters are refused, too";
    InvalidCursor: "invalid-cursor", 400, Never, "The cursor is not one of this list",
        "start again without a cursor; keep the same filters for all pages";
    Unauthenticated: "unauthenticated", 401, Never, "The request has no valid credentials",
        "send a token or an API key (`Authorization: Bearer`); `detail` says what is wrong with the one that was sent. [access.md](../operate/access.md)";
    Denied: "denied", 403, Never, "The caller may not do this",
        "ask an operator of the gateway for the role that `detail` names. [access.md](../operate/access.md)";
    Forbidden: "forbidden", 403, Never, "A browser may not send this request",
        "use the gateway's address or a name that `--allowed-hosts` has, from a page of the gateway or of `--cors-origins`";
    FileQuotaExceeded: "file-quota-exceeded", 403, Never, "The files of the tenant take too much",
        "delete files (`sparkgate files rm`), wait until unused ones are deleted, or ask the operator for a higher `fileBytes`. [files.md](../use/files.md)";
    RecordQuotaExceeded: "record-quota-exceeded", 403, Never, "The records of the tenant's submissions take too much",
        "wait until clean-up has deleted old submissions, or ask the operator for a higher `recordBytes` or a shorter retention. [access.md](../operate/access.md#tenants)";
    NotFound: "not-found", 404, Never, "There is nothing here",
        "see `/v1/openapi.json` for all paths";
    SubmissionNotFound: "submission-not-found", 404, Never, "There is no such submission",
        "check the id; records are deleted after `SPARKGATE_RETENTION`";
    JobNotFound: "job-not-found", 404, Never, "There is no such job",
        "see `sparkgate jobs`; the name of a job is that of its submissions, and is escaped in a path. [jobs.md](../use/jobs.md)";
    SessionNotFound: "session-not-found", 404, Never, "There is no such session",
        "see `sparkgate session list --all`; the id of a session is that of its submission. [connect.md](../use/connect.md)";
    ExecutorNotFound: "executor-not-found", 404, Never, "There is no such executor",
        "see the list `executors`";
    LogNotFound: "log-not-found", 404, Never, "There is no log",
        "`detail` says whether there will be one; `follow=true` waits for it";
    ManifestNotFound: "manifest-not-found", 404, Never, "The objects are not kept",
        "they are deleted with the driver's pod, after `SPARKGATE_FINISHED_POD_TTL`";
    FileNotFound: "file-not-found", 404, Never, "There is no such file",
        "upload it; for a signed URL: it is not one of this gateway";
    SparkUiNotFound: "spark-ui-not-found", 404, Never, "There is no Spark UI",
        "open `/v1/submissions/{id}/ui` again if the URL has expired; an ended submission has its UI in the History Server. [spark-ui.md](../use/spark-ui.md)";
    WebhookNotFound: "webhook-not-found", 404, Never, "There is no such webhook",
        "see `sparkgate webhook list`; others than operators see only their own";
    DeliveryNotFound: "delivery-not-found", 404, Never, "There is no such delivery",
        "it may be pending, or older than 30 days: see the webhook's deliveries";
    NotFinished: "not-finished", 404, Never, "There is no outcome yet",
        "try again later";
    MethodNotAllowed: "method-not-allowed", 405, Never, "The resource has no such method",
        "see the `Allow` header";
    UploadTooSlow: "upload-too-slow", 408, Never, "The upload is too slow",
        "`detail` says how many bytes a second have to arrive. Send the file again, from where it can be sent faster; an upload in parts goes on where it ended";
    ClientIdTaken: "client-id-taken", 409, Never, "Another submission has this id of a client",
        "read the submission `submissionId`, or use another `clientId` for a different one";
    FileUsed: "file-used", 409, Never, "Live submissions use the file",
        "delete it after their end; `sparkgate files list` shows how many there are. [files.md](../use/files.md)";
    UploadOffsetMismatch: "upload-offset-mismatch", 409, Never, "The upload continues elsewhere",
        "continue at `expected-offset`, which is also the header `Upload-Offset`. [files.md](../use/files.md#uploads-that-are-continued)";
    NameTaken: "name-taken", 409, Never, "A live submission has this name",
        "wait until `submissionId` has ended, or omit `uniqueName`";
    CursorExpired: "cursor-expired", 410, Never, "What comes after the cursor is not kept any more",
        "start again: [events.md](../integrate/events.md)";
    FileExpired: "file-expired", 410, Never, "The URL of a file has expired",
        "it was valid until its submission ended";
    RequestTooLarge: "request-too-large", 413, Never, "The body is too large",
        "send a smaller body; the limit is `SPARKGATE_MAX_REQUEST_BODY`, that of a file `SPARKGATE_MAX_FILE_SIZE`";
    UnsupportedMediaType: "unsupported-media-type", 415, Never, "The body has another media type",
        "send `Content-Type: application/json`, or what `detail` names";
    IdempotencyKeyReused: "idempotency-key-reused", 422, Never, "The idempotency key was used for another request",
        "use a new key for a different request; `submissionId` is the submission that has this key";
    PolicyViolated: "policy-violated", 422, Never, "The policy refuses the driver",
        "the member `violations` lists all rules that the driver breaks, each with `rule`, `path`, `message` and `cause`. [policy.md](../operate/policy.md)";
    QueueRefused: "queue-refused", 422, Never, "The queue doesn't accept the submission",
        "name a queue that the tenant may use, or ask for less: `errors` has the field and the reason. [access.md](../operate/access.md#queues)";
    NotQueued: "not-queued", 409, Never, "The submission isn't queued any more",
        "only a queued submission can be held, and only one that waits in a queue can be moved; kill it instead";
    FileMismatch: "file-mismatch", 422, Never, "The content is not that of the announced file",
        "send the content that has the SHA-256 of the path; nothing was kept, and an upload in parts begins anew";
    SubmissionFailed: "submission-failed", 424, Never, "The submission did not succeed",
        "only from `outcome`; the member `submission` has the cause";
    TooManyRequests: "too-many-requests", 429, Soon, "There is no room for more just now",
        "retry after `Retry-After` seconds, or try another replica";
    RateLimited: "rate-limited", 429, Later, "The caller sends too much",
        "retry after `Retry-After` seconds; `detail` names the limit of the access file, or of the tenant. Without `Retry-After` the request alone exceeds it. [access.md](../operate/access.md)";
    InternalError: "internal-error", 500, Perhaps, "A fault of the gateway",
        "`detail` says whether the requested action may have been done; in most cases nothing was. Report `requestId` to the operator";
    InDoubt: "in-doubt", 503, Checked, "The submission may have been accepted",
        "repeat the request if it had an idempotency key; otherwise check `submissionId` first";
    Busy: "busy", 503, Soon, "The gateway is receiving too much at once",
        "retry after `Retry-After` seconds, or try another replica: the bodies of other requests took all the memory there is for bodies";
    Unavailable: "unavailable", 503, Soon, "The database can't be reached",
        "retry after `Retry-After` seconds: no submission was accepted. A kill may have been recorded if `detail` says so; repeating it is safe";
    ClusterUnavailable: "cluster-unavailable", 503, Soon, "The cluster can't be reached",
        "retry after `Retry-After` seconds";
    FilesUnavailable: "files-unavailable", 503, Soon, "The file store can't be reached",
        "retry after `Retry-After` seconds";
    SparkUiUnavailable: "spark-ui-unavailable", 503, Soon, "The Spark UI doesn't answer",
        "retry after `Retry-After` seconds: a driver has a UI from the moment that it has a SparkContext until it stops that. [spark-ui.md](../use/spark-ui.md)";
    AuthenticationUnavailable: "authentication-unavailable", 503, Soon, "The credentials can't be checked now",
        "retry after `Retry-After` seconds: `detail` names what can't be reached";
    TimedOut: "timed-out", 503, Perhaps, "The request took too long",
        "it may still be carried out: repeat the request if it had an idempotency key; otherwise check first";
}

/// A problem of the table.
struct Row {
    name: &'static str,
    status: u16,
    retry: Retry,
    title: &'static str,
    #[cfg(test)]
    remedy: &'static str,
}

/// When the same request may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// In a moment: nothing was done.
    Soon,
    /// At a time that the problem itself has. Nothing was done.
    Later,
    /// At some time. The action may have been done.
    Perhaps,
    /// The same, and a second request may do it twice: the client has to check first, unless it sent an idempotency key.
    Checked,
}

impl Code {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Returns the status of the response.
    pub fn status(self) -> u16 {
        self.row().status
    }

    /// Returns the title, which is the same for every problem of this kind.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// Returns when the same request may succeed.
    pub fn retry(self) -> Retry {
        self.row().retry
    }

    /// Returns the seconds after which the same request may succeed, if repeating it is safe and makes sense.
    pub fn retry_after(self) -> Option<u16> {
        (self.retry() == Retry::Soon).then_some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn every_problem_is_documented() {
        let page = include_str!("../../../../docs/reference/problems.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let table = Code::ALL.iter().map(|code| {
            let row = code.row();
            format!("| `{}` | {} | {} | {} |", row.name, row.status, row.title, row.remedy)
        });
        assert_eq!(
            rows,
            table.collect::<Vec<_>>(),
            "docs/reference/problems.md is out of date: it has the rows of this table"
        );
    }
}
