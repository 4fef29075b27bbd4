-- Keys that the installation had before. What they signed stays valid for what was made before they were replaced.
CREATE TABLE former_installation_keys (
    key             bytea PRIMARY KEY,
    replaced_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Which keys each replica can verify, by its session, so that none signs with a key that another one doesn't have. A replica of
-- an older release has no row: it knows the installation's key alone.
CREATE TABLE replica_keys (
    session         uuid PRIMARY KEY,
    known           text[] NOT NULL,
    written_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Since when every replica signs with keys of the encryption key file, too. Null if one can't.
ALTER TABLE installation ADD COLUMN guarded_since timestamptz;
