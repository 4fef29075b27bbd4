-- Sessions of Spark Connect that members of a tenant share: their names are those of the tenant. The table is small.
ALTER TABLE connect_sessions ADD COLUMN shared boolean NOT NULL DEFAULT false;
DROP INDEX connect_sessions_live;
CREATE UNIQUE INDEX connect_sessions_live ON connect_sessions (tenant, principal, name) WHERE ended_at IS NULL AND NOT shared;
CREATE UNIQUE INDEX connect_sessions_live_shared ON connect_sessions (tenant, name) WHERE ended_at IS NULL AND shared;
-- For those that live, however many have ended.
CREATE INDEX connect_sessions_lives ON connect_sessions (created_at) WHERE ended_at IS NULL;
