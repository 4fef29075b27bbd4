-- What is left of a driver's log, and of what the cluster said about its pod, when the pod is gone.
CREATE TABLE kept_logs (
    submission_id   text NOT NULL COLLATE "C" REFERENCES submissions (id) ON DELETE CASCADE,
    attempt         integer NOT NULL,
    -- The last part, compressed by zstd; each line begins with its time. NULL if it wasn't kept or couldn't be read.
    log             bytea,
    -- Before the compression.
    size_bytes      integer NOT NULL DEFAULT 0,
    -- The driver wrote more before that.
    cut             boolean NOT NULL DEFAULT false,
    -- The Kubernetes events that matter: an array of {type, reason, message, count, at}.
    events          jsonb NOT NULL DEFAULT '[]',
    kept_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (submission_id, attempt)
);

-- It is compressed already.
ALTER TABLE kept_logs ALTER COLUMN log SET STORAGE EXTERNAL;
