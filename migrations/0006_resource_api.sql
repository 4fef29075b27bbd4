-- What people look submissions up by, and what they may ask for beside Spark's own properties.
ALTER TABLE submissions
    -- spark.app.name
    ADD COLUMN name             text NOT NULL DEFAULT '' COLLATE "C",
    -- The user for whom it runs: proxyUser, or SPARK_USER of the request, or the gateway's.
    ADD COLUMN owner            text NOT NULL DEFAULT '' COLLATE "C",
    ADD COLUMN labels           jsonb NOT NULL DEFAULT '{}',
    -- No other live submission may have the same name.
    ADD COLUMN unique_name      boolean NOT NULL DEFAULT false,
    -- With the digest of the request that brought it: the same again is the same submission.
    ADD COLUMN idempotency_key  text COLLATE "C",
    ADD COLUMN fingerprint      bytea,
    -- Seconds: from being queued to running, from running to the end, from SIGTERM to SIGKILL.
    ADD COLUMN start_timeout    integer,
    ADD COLUMN run_timeout      integer,
    ADD COLUMN kill_grace       integer,
    -- When the time to start, or then to run, is over.
    ADD COLUMN deadline         timestamptz,
    -- Why it is being killed: `Killed` (on request), `StartTimeout`, `RunTimeout`.
    ADD COLUMN kill_cause       text,
    -- How often another attempt may follow one that failed, by the kind of failure, and how often one did.
    ADD COLUMN max_retries_infrastructure integer NOT NULL DEFAULT 0,
    ADD COLUMN max_retries_application    integer NOT NULL DEFAULT 0,
    ADD COLUMN retried_infrastructure     integer NOT NULL DEFAULT 0,
    ADD COLUMN retried_application        integer NOT NULL DEFAULT 0,
    -- When the present attempt was queued.
    ADD COLUMN queued_at        timestamptz;

UPDATE submissions SET name = coalesce(request -> 'sparkProperties' ->> 'spark.app.name', ''),
    owner = coalesce(request ->> 'proxyUser', request -> 'environmentVariables' ->> 'SPARK_USER', spark_user);

CREATE UNIQUE INDEX submissions_idempotency ON submissions (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX submissions_unique_name ON submissions (namespace, name)
    WHERE unique_name AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING');
CREATE INDEX submissions_deadline ON submissions (deadline)
    WHERE deadline IS NOT NULL AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING');

-- Lists, newest first.
CREATE INDEX submissions_by_state ON submissions (state, number);
CREATE INDEX submissions_by_name ON submissions (name, number);
CREATE INDEX submissions_by_owner ON submissions (owner, number);
CREATE INDEX submissions_by_namespace ON submissions (namespace, number);
CREATE INDEX submissions_by_creation ON submissions (created_at);
CREATE INDEX submissions_by_label ON submissions USING gin (labels jsonb_path_ops);

-- Attempts that ended and were followed by another; the present one is in the submission's row.
CREATE TABLE attempts (
    submission_id   text NOT NULL COLLATE "C" REFERENCES submissions (id) ON DELETE CASCADE,
    attempt         integer NOT NULL,
    state           text NOT NULL,
    exit_code       integer,
    reason          text,
    message         text,
    names           jsonb NOT NULL,
    pod_uid         text,
    node            text,
    pod_ip          text,
    queued_at       timestamptz,
    started_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    -- As on submissions: the driver pod was deleted by clean-up.
    pod_deleted_at  timestamptz,
    PRIMARY KEY (submission_id, attempt)
);

-- Each attempt has objects of its own.
ALTER TABLE manifests ADD COLUMN attempt integer NOT NULL DEFAULT 1;
ALTER TABLE manifests DROP CONSTRAINT manifests_pkey, ADD PRIMARY KEY (submission_id, attempt);
