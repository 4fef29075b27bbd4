-- Sessions of Spark Connect: submissions whose driver runs Spark Connect's server. A row is written right before its submission, so
-- there may be none for a moment, or for ever; the clean-up finds that.
CREATE TABLE connect_sessions (
    submission_id   text PRIMARY KEY COLLATE "C",
    tenant          text NOT NULL,
    principal       text NOT NULL,
    name            text NOT NULL,
    -- In seconds.
    idle_timeout    integer NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When its server was first reached.
    ready_at        timestamptz,
    -- The last request of a client, accurate to some seconds.
    used_at         timestamptz,
    -- SHA-256 of the token of its server. The token itself is derived from a key of the installation.
    token_digest    bytea,
    -- When it was ended because it was idle.
    idled_at        timestamptz,
    -- When its submission was seen to have ended. Until then, its name is taken.
    ended_at        timestamptz
);

CREATE UNIQUE INDEX connect_sessions_live ON connect_sessions (tenant, principal, name) WHERE ended_at IS NULL;
