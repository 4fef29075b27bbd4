-- The epoch of the lease under which the position of a watch was stored: a write under an older one changes nothing. 0 for positions
-- of earlier releases.
ALTER TABLE watch_positions ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
