-- When the current attempt of a submission becomes late: after what its request says, or what the runs before it took. Written for runs
-- that have gone on for a minute.
CREATE TABLE expected_ends (
    submission_id   text NOT NULL COLLATE "C" REFERENCES submissions (id) ON DELETE CASCADE,
    attempt         integer NOT NULL,
    -- The expected duration in seconds; NULL if nothing is known.
    seconds         integer,
    -- Of how many runs it is the median; NULL if the request says it.
    runs            integer,
    -- NULL if it never becomes late, or was reported.
    late_at         timestamptz,
    -- When it was reported.
    reported_at     timestamptz,
    PRIMARY KEY (submission_id, attempt)
);

CREATE INDEX expected_ends_late ON expected_ends (late_at) WHERE late_at IS NOT NULL;
