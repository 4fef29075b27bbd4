-- One row for each accepted request. All names that an attempt will ever use are fixed here before anything is created.
CREATE SEQUENCE submission_number MINVALUE 0 START 0;

CREATE TABLE submissions (
    -- driver-<yyyyMMddHHmmss>-<number>, in UTC
    id              text PRIMARY KEY COLLATE "C",
    number          bigint NOT NULL UNIQUE,
    state           text NOT NULL,
    -- The request as it will be launched: the operator's defaults are already in it.
    request         jsonb NOT NULL,
    spark_version   text NOT NULL,
    -- SPARK_USER where the request names none.
    spark_user      text NOT NULL,
    namespace       text NOT NULL,
    attempt         integer NOT NULL DEFAULT 1,
    names           jsonb NOT NULL,
    -- How it ended, or why it still waits.
    exit_code       integer,
    reason          text,
    message         text,
    -- Written as soon as the pod exists and before anything that lets the driver start.
    pod_uid         text,
    node            text,
    pod_ip          text,
    created_at      timestamptz NOT NULL,
    started_at      timestamptz,
    finished_at     timestamptz,
    -- Spark's `clear`: forgotten by the status of Spark's protocol, kept as a record.
    cleared_at      timestamptz,
    -- A worker holds the row until then; nobody else touches its objects meanwhile.
    claimed_by      uuid,
    claimed_until   timestamptz,
    -- Not to be claimed before (back-off), and how many tries in a row failed.
    not_before      timestamptz,
    failed_tries    integer NOT NULL DEFAULT 0,
    CONSTRAINT submissions_state CHECK (state IN
        ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING', 'FINISHED', 'FAILED', 'KILLED', 'ERROR', 'LOST'))
);

-- What workers look for, oldest first.
CREATE INDEX submissions_to_work_on ON submissions (number) WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING');
-- What a relist compares with the cluster.
CREATE INDEX submissions_with_a_pod ON submissions (number) WHERE state IN ('PENDING', 'RUNNING', 'KILLING');

-- Every change of state, in order.
CREATE TABLE submission_events (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    submission_id   text NOT NULL COLLATE "C" REFERENCES submissions (id) ON DELETE CASCADE,
    attempt         integer NOT NULL,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    state           text NOT NULL,
    reason          text,
    message         text
);

CREATE INDEX submission_events_of ON submission_events (submission_id, id);
