-- Attempts that followed because memory ran out, and restarts since the last long run. What a submission may have of them is among the
-- properties of its request.
ALTER TABLE submissions
    ADD COLUMN retried_memory integer NOT NULL DEFAULT 0,
    ADD COLUMN restarts integer NOT NULL DEFAULT 0;
