-- no-transaction
CREATE UNIQUE INDEX CONCURRENTLY submission_events_key ON submission_events (submission_id, id);
