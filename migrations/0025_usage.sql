-- What the driver pod of the current attempt reserves on its node, since when and until when, as the watch showed it: usage is
-- computed from these columns. NULL is unknown, as for pods that ended under an earlier release.
ALTER TABLE submissions
    ADD COLUMN pod_millicores    bigint,
    ADD COLUMN pod_memory_bytes  bigint,
    -- When its node accepted the pod.
    ADD COLUMN pod_since         timestamptz,
    -- When the driver's container ended. NULL if its node didn't report that: then finished_at is an estimate.
    ADD COLUMN pod_ended_at      timestamptz;

-- The same for past attempts.
ALTER TABLE attempts
    ADD COLUMN pod_millicores    bigint,
    ADD COLUMN pod_memory_bytes  bigint,
    ADD COLUMN pod_since         timestamptz,
    ADD COLUMN pod_ended_at      timestamptz;

ALTER TABLE executors
    ADD COLUMN pod_millicores    bigint,
    ADD COLUMN pod_memory_bytes  bigint,
    ADD COLUMN pod_since         timestamptz,
    -- Its node didn't report the end: finished_at is when the gateway recorded it.
    ADD COLUMN end_estimated     boolean NOT NULL DEFAULT false;

-- What submissions used whose usage is settled, by day in UTC: it no longer changes, and stays when they are deleted. Reports add
-- the usage of all other submissions.
CREATE TABLE usage_by_day (
    day                             date NOT NULL,
    -- A digest of the five columns that follow.
    key                             bytea NOT NULL,
    tenant                          text NOT NULL COLLATE "C",
    principal                       text NOT NULL COLLATE "C",
    owner                           text NOT NULL COLLATE "C",
    namespace                       text NOT NULL COLLATE "C",
    labels                          jsonb NOT NULL,
    driver_core_seconds             numeric NOT NULL,
    driver_memory_byte_seconds      numeric NOT NULL,
    executor_core_seconds           numeric NOT NULL,
    executor_memory_byte_seconds    numeric NOT NULL,
    -- The part of these whose end is estimated.
    estimated_core_seconds          numeric NOT NULL,
    estimated_memory_byte_seconds   numeric NOT NULL,
    PRIMARY KEY (day, key)
);

-- Submissions that ended before this time are settled. The version lets one statement at a time settle others.
CREATE TABLE usage_settled (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    until           timestamptz NOT NULL,
    version         bigint NOT NULL DEFAULT 0
);
-- What ended under an earlier release has no usage.
INSERT INTO usage_settled (until) VALUES (now() - interval '1 day');
