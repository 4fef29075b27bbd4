-- One row for each executor that the cluster has shown.
CREATE TABLE executors (
    submission_id   text NOT NULL COLLATE "C" REFERENCES submissions (id) ON DELETE CASCADE,
    attempt         integer NOT NULL,
    -- The label spark-exec-id, which the driver gives once.
    executor_id     bigint NOT NULL,
    pod_name        text NOT NULL,
    pod_uid         text NOT NULL,
    state           text NOT NULL,
    -- What the last write found; the counts of the submission are kept by it.
    state_before    text,
    -- Of Spark's container.
    exit_code       integer,
    -- How it ended, or why it still waits.
    reason          text,
    message         text,
    node            text,
    created_at      timestamptz,
    started_at      timestamptz,
    finished_at     timestamptz,
    PRIMARY KEY (submission_id, attempt, executor_id),
    CONSTRAINT executors_state CHECK (state IN ('UNKNOWN', 'PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'DELETED'))
);

-- What a full list compares with the cluster.
CREATE INDEX executors_live ON executors (submission_id) WHERE state IN ('UNKNOWN', 'PENDING', 'RUNNING');

-- How many executors of all attempts are in each state, written together with their rows: a page of submissions need not
-- count them.
ALTER TABLE submissions
    ADD COLUMN executors_pending integer NOT NULL DEFAULT 0,
    ADD COLUMN executors_running integer NOT NULL DEFAULT 0,
    ADD COLUMN executors_succeeded integer NOT NULL DEFAULT 0,
    ADD COLUMN executors_failed integer NOT NULL DEFAULT 0,
    ADD COLUMN executors_deleted integer NOT NULL DEFAULT 0;
