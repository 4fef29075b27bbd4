-- What a launch changed in the objects of an attempt: a list of changes, each with the feature that made it (`by`). The objects are stored
-- as they were accepted.
CREATE TABLE attempt_overlays (
    submission_id   text NOT NULL COLLATE "C" REFERENCES submissions (id) ON DELETE CASCADE,
    attempt         integer NOT NULL,
    changes         jsonb NOT NULL,
    PRIMARY KEY (submission_id, attempt)
);
