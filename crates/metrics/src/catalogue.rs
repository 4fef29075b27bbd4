//! Every metric: its name, its labels, what it means, and what an operator does about it. `docs/reference/metrics.md` is written from
//! this
//! list (`make metrics-docs`), and each name in the dashboard, the rules and the alerts is one of it.
//!
//! Labels have few values: tenants and namespaces are those that the operator configured, everything else is a closed list in
//! the
//! code. No label has the name of a user, an id or a path of a request.

use crate::instruments::{Counter, Counters, Gauge, Gauges, Histogram, Histograms, ReadCounter, catalogue};

/// Waiting and running, from a quarter of a second to two days.
const LONG: &[f64] =
    &[0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 172_800.0];
/// A step of a start, from a tenth of a second to an hour.
const STEP: &[f64] = &[0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0];
/// Calls, from a millisecond to a minute.
const CALL: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// How many share something.
const SIZE: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

catalogue! {
"Submissions" {
    /// Submissions that haven't ended, from their rows. Every replica reports the same, at most 10 s old: take the maximum of
    /// the replicas.
    submissions: Gauges<2> = "sparkgate_submissions" ["tenant", "state"];
    /// How long the oldest submission has waited for the creation of its driver pod. Every replica reports the same; none
    /// waits in a tenant that is absent.
    oldest_queued: Gauges<1> = "sparkgate_submissions_oldest_queued_seconds" ["tenant"]
        => "`sparkgate status ID` of the oldest one gives the reason (`sparkgate list --state QUEUED`). If many wait, look \
            at the launch tries, the circuit breakers and the latency of the API server.";
    /// Submissions that were accepted and committed. A repeated request with the same idempotency key counts once.
    accepted: Counters<1> = "sparkgate_submissions_accepted_total" ["tenant"];
    /// Submissions that were not accepted, by reason: `invalid` (no driver can be made of it), `denied`, `policy`, `full`
    /// (the tenant's limit `queued`), `key_reused`, `name_taken`, `database` (not available), `in_doubt` (the database didn't
    /// confirm it) and `internal`. A body that can't be read is only in the HTTP metrics.
    refused: Counters<1> = "sparkgate_submissions_refused_total" ["reason"];
    /// Submissions that ended, by terminal state, and by class and code of the failure (failures.md), which are `none` for
    /// FINISHED.
    ended: Counters<4> = "sparkgate_submissions_ended_total" ["tenant", "state", "class", "code"]
        => "A class `infrastructure`, `capacity` or `image` that grows is the operator's concern, `application` and \
            `configuration` are the user's.";
    /// Attempts that failed and are followed by another one, by the code of the failure.
    retried: Counters<2> = "sparkgate_attempts_retried_total" ["tenant", "code"];
    /// Runs that were reported because they take longer than expected.
    late: Counters<1> = "sparkgate_submissions_late_total" ["tenant"];
    /// Time from the acceptance until all objects of the driver exist (PENDING). For a later attempt, from the end of the one
    /// before.
    time_to_pod: Histogram = "sparkgate_submission_time_to_pod_seconds" [] in LONG;
    /// Time from the acceptance until the driver's container was seen running. For a later attempt, from the end of the one
    /// before.
    time_to_running: Histogram = "sparkgate_submission_time_to_running_seconds" [] in LONG
        => "If it grows and the time to the pod doesn't, the cluster is slow: images, nodes, quotas.";
    /// Time that a step of an attempt's start took, since the step before: `admitted` by its queue, `created` (all objects exist),
    /// `scheduled` (a node accepted the pod), `started` (the image is there, and the container runs), `executorRequested` (the `SparkContext`
    /// is up), `executorStarted`, `firstJob`. Each attempt counts once, five minutes after its driver started or ended. Only the replica
    /// that measures has it: sum the replicas. A pause before a retry counts nowhere.
    startup_step: Histograms<2> = "sparkgate_startup_step_seconds" ["tenant", "step"] in STEP
        => "`scheduled`: the cluster lacks room, or scales up. `started`: a large image, or volumes. `executorStarted`: nodes for \
            executors. `sparkgate jobs NAME` has the steps of one job.";
    /// Time from the acceptance to the end, by terminal state. Submissions that were killed while they were queued aren't
    /// counted.
    time_to_end: Histograms<1> = "sparkgate_submission_time_to_end_seconds" ["state"] in LONG;
}
"Queues" {
    /// Submissions of a queue of the access file, by standing: `waiting` for their admission, `held`, and `admitted`, which run or are
    /// launched. Every replica reports the same, as for the other gauges of queues: take the maximum.
    queue_submissions: Gauges<2> = "sparkgate_queue_submissions" ["queue", "standing"];
    /// How long the first submission of a queue has waited, not counting held ones. A queue in which none waits is absent.
    queue_oldest_waiting: Gauges<1> = "sparkgate_queue_oldest_waiting_seconds" ["queue"]
        => "`waiting` in the document of the submission says what it waits for. If it grows for all queues, the capacity is too small; \
            for one, its caps or its weight.";
    /// The part of a cap that the admitted submissions of a queue use, by resource: 1 is all of it. Resources without a cap are absent.
    queue_cap_used: Gauges<2> = "sparkgate_queue_cap_used_ratio" ["queue", "resource"]
        => "Near 1 for hours while submissions wait: raise the cap, if the cluster has room.";
    /// Cores that the admitted submissions of a queue reserve.
    queue_cores: Gauges<1> = "sparkgate_queue_cores" ["queue"];
    /// Memory that they reserve.
    queue_memory: Gauges<1> = "sparkgate_queue_memory_bytes" ["queue"];
    /// Cores of these beyond the queue's part of the capacity: other queues lend them.
    queue_lent_cores: Gauges<1> = "sparkgate_queue_lent_cores" ["queue"];
    /// Memory beyond that part.
    queue_lent_memory: Gauges<1> = "sparkgate_queue_lent_memory_bytes" ["queue"];
    /// Time from the acceptance until the queue admits a submission. For a later attempt, from the end of the one before. Its count is
    /// that of admissions. Only the replica that admits has it.
    queue_wait: Histograms<1> = "sparkgate_queue_wait_seconds" ["queue"] in LONG;
    /// Submissions, and dry runs, that a queue refused, by reason: `backlog` (its limit `maxQueued`), `draining`, `never_fits` (it costs
    /// more than a cap or the capacity), and `would_wait` (a client of the API waits for its pod in the request).
    queue_refused: Counters<2> = "sparkgate_queue_refused_total" ["queue", "reason"]
        => "`never_fits`: raise the cap, or tell the user to ask for less. `would_wait`: Kubeflow's operator tries again.";
}
"Launches and kills" {
    /// Pieces of claimed work that ended, by `task` (`launch`, `kill`) and `result`: `done`, `look_again` (a deleted driver
    /// is checked later), `retried` (no or an unclear answer), `denied` (the API server or a webhook denies it for
    /// now), `no_room` (the quota of the namespace is full), `no_key` (the objects can't be decrypted), `no_files` (the store of uploaded files is away), `given_up` and `claim_lost` (another replica continues).
    launch_tries: Counters<2> = "sparkgate_launch_tries_total" ["task", "result"]
        => "`denied`: a right or the namespace is missing, see the log. `no_room`: raise the quota if jobs wait too long. `retried`: the API server or a webhook doesn't answer.";
    /// Launches and kills that this replica works on. There are 192 slots.
    launches_in_progress: Gauge = "sparkgate_launches_in_progress" [];
    /// 1 for each namespace whose calls fail, so that launches there pause. Absent for others.
    breaker_open: Gauges<1> = "sparkgate_circuit_breaker_open" ["driver_namespace"]
        => "Look at the calls of the API server by code, at webhooks for this namespace and at its quota.";
}
"Kubernetes API" {
    /// Calls of the API server, by verb, resource (`pods/log` is the subresource) and HTTP status; `none` is a call without
    /// an answer.
    kubernetes_requests: Counters<3> = "sparkgate_kubernetes_requests_total" ["verb", "resource", "code"];
    /// Time until the head of the API server's answer, of calls that were answered.
    kubernetes_seconds: Histograms<2> = "sparkgate_kubernetes_request_duration_seconds" ["verb", "resource"] in CALL;
    /// Objects that should enforce the boundaries of tenants and are missing or differ in the cluster.
    boundary_findings: Gauge = "sparkgate_boundary_findings" []
        => "`/readyz` of the management port lists them. Apply what `sparkgate admission` prints (admission.md).";
}
"Watch of the pods" {
    /// Whether this replica watches the pods of a namespace (`*`: of all) and the watch works. The sum over the replicas
    /// should be 1.
    watch_active: Gauges<1> = "sparkgate_watch_active" ["driver_namespace"]
        => "If it is 0 on all replicas, no state advances. `/readyz` of the management port says why.";
    /// For how long a watch of this replica has been behind: since it broke, or since the oldest observations that are not
    /// written yet arrived. 0 if all are written.
    watch_lag: Gauges<1> = "sparkgate_watch_lag_seconds" ["driver_namespace"]
        => "Observations wait for the database, or the API server is away.";
    /// Resource version up to which everything is processed and stored.
    watch_position: Gauges<1> = "sparkgate_watch_position" ["driver_namespace"];
    /// Interruptions of a watch, which resumes by itself.
    watch_interruptions: Counters<1> = "sparkgate_watch_interruptions_total" ["driver_namespace"];
    /// Full lists of the pods: at the start of a watch, after a gap, and every ten minutes.
    watch_lists: Counters<1> = "sparkgate_watch_lists_total" ["driver_namespace"];
}
"Database" {
    /// Whether the database answered within a second when it was last asked, at most 10 s ago.
    database_up: Gauge = "sparkgate_database_up" []
        => "Without it, nothing is accepted or launched; drivers go on. Check the server, the network and the password.";
    /// Duration of a statement, by the operation that errors in the log name, too. The statements of loops include the wait for a
    /// connection; for requests, that is the operation `acquiring a connection`.
    statement_seconds: Histograms<1> = "sparkgate_database_statement_duration_seconds" ["operation"] in CALL;
    /// Statements that failed: `unavailable` (no connection, an outage), `contention` (locked rows, a timeout of the server),
    /// `failed` (an error of Sparkgate, or a missing right).
    database_errors: Counters<1> = "sparkgate_database_errors_total" ["kind"]
        => "`failed` should stay 0: the log names the statement.";
    /// Connections by pool (`requests`, `accepting`, `workers`, `leases`) and whether they are `busy` or `idle`.
    connections: Gauges<2> = "sparkgate_database_connections" ["pool", "state"];
    /// The most connections that a pool may open.
    connections_max: Gauges<1> = "sparkgate_database_connections_max" ["pool"]
        => "If a pool is busy for minutes, look for slow statements, then raise `--database-connections`.";
    /// How many calls shared one statement, by group commit: `accept`, `allocate` (ids), `record` (pods), `launch`.
    group_size: Histograms<1> = "sparkgate_database_group_size" ["group"] in SIZE;
    /// How far the database's clock is ahead of this machine's. While it is a minute or more, either way, nothing is overdue
    /// and nothing is cleaned up, until the difference has lasted for ten minutes.
    clock_ahead: Gauge = "sparkgate_database_clock_ahead_seconds" []
        => "Synchronize the clocks of the database's machine and of the gateway's. A difference that lasts is believed \
            after ten minutes.";
}
"Replicas" {
    /// Whether this replica holds a lease: `watch/…`, the deadlines, the clean-up. The sum over the replicas is at most 1.
    lease_held: Gauges<1> = "sparkgate_lease_held" ["lease"];
    /// Leases that this replica lost without releasing them.
    leases_lost: Counters<1> = "sparkgate_leases_lost_total" ["lease"]
        => "The database was away, or this process was stopped for seconds: look for CPU limits that throttle it.";
    /// Sessions of this replica: one at the start, and one after each in which its leases expired.
    sessions: Counter = "sparkgate_sessions_total" [];
}
"Logs and streams" {
    /// Clients that follow events or wait for a submission.
    subscribers: Gauge = "sparkgate_event_subscribers" [];
    /// Logs that are being read for clients.
    log_readers: Gauge = "sparkgate_log_readers" [];
    /// Logs of ended drivers, by what became of them: `stored` or `failed`.
    log_archive: Counters<1> = "sparkgate_log_archives_total" ["result"]
        => "`failed`: nodes don't return logs within 5 s, or the account lacks the right to read `pods/log`; the log says \
            which.";
    /// Logs of containers that are being stored.
    log_streams: Gauge = "sparkgate_log_streams" [];
    /// Logs of containers that wait to be stored: as many as possible are, or their pods aren't recorded yet.
    log_streams_waiting: Gauge = "sparkgate_log_streams_waiting" []
        => "If it stays above 0, more containers run than one replica follows: 400 of a namespace, 600 in all. Executors that end \
            meanwhile may lose the end of their logs.";
    /// Logs of ended containers that were stored, by result: `whole`, `gap` (the node deleted lines before they were read), `cut` (larger than
    /// `--logs-max-size`), `incomplete` (the pod was gone, or its node didn't answer, before the end was read).
    logs_stored: Counters<1> = "sparkgate_logs_stored_total" ["result"];
    /// Bytes of logs that were stored, before compression.
    log_stored_bytes: Counter = "sparkgate_log_stored_bytes_total" [];
    /// Writes and lists of the store of logs that failed. They are tried again.
    log_store_errors: Counter = "sparkgate_log_store_errors_total" []
        => "The store is away, or refuses the gateway's credentials: the log says which. Logs wait on their nodes meanwhile, and are \
            lost with pods that are deleted.";
}
"Files" {
    /// Uploads that ended, by outcome: `kept`, `existing` (the tenant had the file), `part` (of an upload that goes on),
    /// `elsewhere` (another request has continued it), `broken` (the client has gone), `slow` (it sent too little), `mismatch`
    /// (another SHA-256), `quota`, `refused`, `busy`, `store`, `database` and `internal`.
    file_uploads: Counters<1> = "sparkgate_file_uploads_total" ["outcome"]
        => "`store`: see the errors of the store. `broken`: a proxy may limit the size or the time of requests.";
    /// Bytes of files, by direction: `received` from clients, `sent` to drivers, executors and clients.
    file_bytes: Counters<1> = "sparkgate_file_bytes_total" ["direction"];
    /// Calls of the file store that failed after all retries, by action.
    file_store_errors: Counters<1> = "sparkgate_file_store_errors_total" ["action"]
        => "`sparkgate doctor` tries the store; uploads are refused and launches wait until it answers.";
    /// What was deleted, by kind: files that were `unused` or whose deletion was `requested`, each `upload` that was given up, and
    /// each `orphan`, an object that belongs to nothing.
    files_deleted: Counters<1> = "sparkgate_files_deleted_total" ["kind"];
}
"Webhooks" {
    /// Tries of deliveries, by the format of their messages and the result: `delivered`, `failed` (tried again) and `dead` (given up).
    webhook_deliveries: Counters<2> = "sparkgate_webhook_deliveries_total" ["format", "result"]
        => "`dead`: a receiver was away for a day, or refuses what it gets; `GET /v1/webhooks/{id}/deliveries` says why.";
    /// Time until the answer of a receiver, or until it was given up on.
    webhook_seconds: Histogram = "sparkgate_webhook_delivery_duration_seconds" [] in CALL;
    /// Events that aren't queued for webhooks yet. Only the replica that sends them has it.
    webhook_events_behind: Gauge = "sparkgate_webhook_events_behind" []
        => "If it grows, the database is slow, or no replica holds the lease `webhooks`.";
}
"Sessions of Spark Connect" {
    /// Sessions that haven't ended. Every replica reports the same, at most 10 s old: take the maximum of the replicas.
    connect_sessions: Gauges<1> = "sparkgate_connect_sessions" ["tenant"];
    /// Requests of clients to the servers of their sessions that are under way on this replica.
    connect_streams: Gauge = "sparkgate_connect_streams" [];
    /// Requests of clients, by result: `relayed` to the server of a session, or refused with a code of gRPC: `invalid_argument` (it
    /// names no session), `not_found`, `permission_denied`, `failed_precondition` (the session has ended), `unimplemented`, `internal`,
    /// `unavailable` (clients try again) and `unauthenticated`.
    connect_requests: Counters<1> = "sparkgate_connect_requests_total" ["result"]
        => "Many `unavailable` ones: drivers take long to start, or a `NetworkPolicy` keeps the gateway from the port `spark-connect` of drivers (connect.md).";
}
"Callers" {
    /// Requests without a valid caller: `missing` credentials, `invalid` ones, `limited` (their address had too many invalid ones, so they weren't checked), or `unavailable` (they can't be checked now).
    logins_refused: Counters<1> = "sparkgate_logins_refused_total" ["reason"]
        => "`unavailable`: the issuer or the API server doesn't answer. Many `invalid` ones: someone guesses, or keys were \
            revoked; the request log has the addresses.";
    /// Requests that exceeded a limit of the access file, by the name of the limit.
    requests_limited: Counters<1> = "sparkgate_requests_limited_total" ["limit"];
}
"HTTP" {
    /// Answered requests, by the template of the route, the method and the status. `other` is a path without a route.
    http_requests: Counters<3> = "sparkgate_http_requests_total" ["route", "method", "status"];
    /// Time until the head of an answer. A stream counts until it begins.
    http_seconds: Histograms<2> = "sparkgate_http_request_duration_seconds" ["route", "method"] in CALL;
}
"Files" {
    /// Whether a file could be used when it was last read: `access`, `encryption_keys`, `tls`, or `settings` (the file of
    /// settings and what it names: Spark defaults, submitter directory, Spark lines). If not, its earlier content stays valid.
    file_reload_ok: Gauges<1> = "sparkgate_file_last_reload_successful" ["file"]
        => "The log has the line and the remedy.";
    /// When a file was last read and used, in seconds since 1970.
    file_reloaded: Gauges<1> = "sparkgate_file_last_reload_success_timestamp_seconds" ["file"];
    /// When the listener's certificate expires, in seconds since 1970.
    certificate_expiry: Gauge = "sparkgate_certificate_expiry_timestamp_seconds" []
        => "0: there is none. Renew the certificate; the file is read again by itself.";
}
"Process" {
    /// 1, with the version of the program and the Spark release that it behaves like.
    build_info: Gauges<2> = "sparkgate_build_info" ["version", "spark_version"];
    /// CPU time that the process has used.
    process_cpu: ReadCounter = "process_cpu_seconds_total" [];
    /// Memory that the process has in RAM.
    process_resident_memory: Gauge = "process_resident_memory_bytes" [];
    /// Address space of the process.
    process_virtual_memory: Gauge = "process_virtual_memory_bytes" [];
    /// Open file descriptors.
    process_open_fds: Gauge = "process_open_fds" [];
    /// The most file descriptors that may be open.
    process_max_fds: Gauge = "process_max_fds" [];
    /// Threads of the process.
    process_threads: Gauge = "process_threads" [];
    /// When the process started, in seconds since 1970.
    process_start_time: Gauge = "process_start_time_seconds" [];
}
}
