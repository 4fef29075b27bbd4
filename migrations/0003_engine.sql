-- Who may do what until when. Every replica holds `replica/<its session>`, which stands behind its claims; what only one
-- of them does (`watch/…`, `clean-up`) is a lease too. All times are this database's.
CREATE TABLE leases (
    name            text PRIMARY KEY COLLATE "C",
    holder          uuid NOT NULL,
    -- Counted up with each change of the holder.
    epoch           bigint NOT NULL DEFAULT 1,
    expires_at      timestamptz NOT NULL
);

-- A claim lasts as long as the lease of its holder. Writes under it name the epoch, so that a later claim shuts them out.
ALTER TABLE submissions DROP COLUMN claimed_until;
ALTER TABLE submissions ADD COLUMN claim_epoch bigint NOT NULL DEFAULT 0;

-- The objects of an attempt, as they are created: rendered once, so that it doesn't matter which release launches them.
CREATE TABLE manifests (
    submission_id   text PRIMARY KEY COLLATE "C" REFERENCES submissions (id) ON DELETE CASCADE,
    -- JSON: {"before": […], "pod": …, "beside": […]}
    objects         text NOT NULL
);
ALTER TABLE submissions DROP COLUMN submitter_files;

-- Up to which resource version the watch of a namespace (`*`: of all) was taken in.
CREATE TABLE watch_positions (
    scope            text PRIMARY KEY COLLATE "C",
    resource_version text NOT NULL,
    at               timestamptz NOT NULL
);

-- The id in the label sparkgate.dev/instance: which pods are this database's.
CREATE TABLE installation (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id              uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO installation DEFAULT VALUES;
