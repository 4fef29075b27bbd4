-- How far the starts of attempts are measured: the number of the last event that was looked at. One row.
CREATE TABLE measured_starts (
    is_only     boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    sequence    bigint NOT NULL
);

-- Starts before this release aren't measured.
INSERT INTO measured_starts (sequence) SELECT coalesce(max(last), 0) FROM event_sequence;
