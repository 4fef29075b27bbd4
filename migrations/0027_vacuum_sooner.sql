-- Each change of a state leaves an entry in the index in which the launcher looks for work, and in that of events without a number,
-- until the next vacuum: a claim that finds nothing reads one page after a vacuum, and a thousand after 200,000 submissions. By
-- default a vacuum waits until a fifth of the rows has changed, which is a lot with millions of ended submissions.
ALTER TABLE submissions SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE submission_events SET (autovacuum_vacuum_scale_factor = 0.02);
