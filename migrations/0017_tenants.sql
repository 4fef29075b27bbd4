-- The tenant that a submission belongs to, and the caller that submitted it, as the gateway authenticated it.
ALTER TABLE submissions
    ADD COLUMN tenant       text NOT NULL DEFAULT 'default' COLLATE "C",
    ADD COLUMN principal    text NOT NULL DEFAULT 'anonymous:anonymous' COLLATE "C";

-- Who did what to which submission, and with which verdict. Rows are only inserted: the role of the gateway needs no other right.
CREATE TABLE audit (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    principal       text NOT NULL COLLATE "C",
    -- Of the peer, or of the client if a trusted proxy names it.
    address         text,
    request_id      text,
    action          text NOT NULL,
    -- NULL if the action concerns no single tenant.
    tenant          text COLLATE "C",
    submission_id   text COLLATE "C",
    verdict         text NOT NULL CONSTRAINT audit_verdict CHECK (verdict IN ('allowed', 'denied')),
    -- Why it was denied, or what else is worth knowing.
    detail          text
);
CREATE INDEX audit_by_tenant ON audit (tenant, id);
CREATE INDEX audit_by_submission ON audit (submission_id, id) WHERE submission_id IS NOT NULL;

-- Keys with which programs authenticate themselves. The text of a key isn't stored, only its digest.
CREATE TABLE api_keys (
    -- The part of the key that isn't secret.
    id              text PRIMARY KEY COLLATE "C",
    digest          bytea NOT NULL,
    name            text NOT NULL COLLATE "C",
    -- NULL for all tenants.
    tenant          text COLLATE "C",
    role            text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by      text NOT NULL COLLATE "C",
    expires_at      timestamptz,
    revoked_at      timestamptz,
    revoked_by      text COLLATE "C",
    -- Accurate to some minutes.
    last_used_at    timestamptz
);
