-- The order in which changes are told. Ids come with the writes, which commit in another order: who reads on from the
-- highest id that it saw misses what was drawn before and committed later. So events are numbered after their commit, by
-- one transaction after another.
ALTER TABLE submission_events
    -- NULL until then.
    ADD COLUMN sequence bigint;

-- The highest number so far. It stays when events are deleted, so that no number comes twice.
CREATE TABLE event_sequence (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last            bigint NOT NULL
);

UPDATE submission_events e SET sequence = numbered.place
FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM submission_events) AS numbered
WHERE e.id = numbered.id;
INSERT INTO event_sequence (last) SELECT count(*) FROM submission_events;

CREATE UNIQUE INDEX submission_events_sequence ON submission_events (sequence) WHERE sequence IS NOT NULL;
-- What is to be numbered next.
CREATE INDEX submission_events_unnumbered ON submission_events (id) WHERE sequence IS NULL;
