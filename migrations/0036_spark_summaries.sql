-- What the REST API of a driver said last of its jobs and stages; kept after the driver's end. Best effort: a summary may be missing,
-- or older than the end.
CREATE TABLE spark_summaries (
    submission_id   text PRIMARY KEY COLLATE "C" REFERENCES submissions (id) ON DELETE CASCADE,
    -- When the driver is asked again. A replica that asks it moves this time first, so that no other one does.
    next_at         timestamptz NOT NULL,
    -- NULL until the driver has answered.
    attempt         integer,
    read_at         timestamptz,
    summary         jsonb
);
