-- Sessions of browsers that signed in to the console.
CREATE TABLE browser_sessions (
    -- A digest of the secret in the browser's cookie. The secret itself isn't stored.
    id              bytea PRIMARY KEY,
    -- The name of the issuer, and the principal that signed in.
    issuer          text NOT NULL COLLATE "C",
    principal       text NOT NULL COLLATE "C",
    -- The issuer's tokens, encrypted with a key that is derived from the secret of the cookie.
    sealed          bytea NOT NULL,
    -- How often the tokens were renewed.
    renewals        integer NOT NULL DEFAULT 0,
    -- Until when a replica is renewing the tokens.
    renewing_until  timestamptz,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When its user opened a page last, accurate to a minute.
    last_used_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- How long it lasts without a page that is opened.
    idle            interval NOT NULL,
    expires_at      timestamptz NOT NULL
);

-- For the deletion of those that have ended.
CREATE INDEX browser_sessions_expires_at ON browser_sessions (expires_at);
