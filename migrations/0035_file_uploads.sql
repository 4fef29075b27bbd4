-- Uploads of files that aren't complete. Each belongs to one principal, so that no other one can spoil it.
CREATE TABLE file_uploads (
    tenant          text NOT NULL COLLATE "C",
    -- Of the whole file, in hex: what the client announced.
    sha256          text NOT NULL COLLATE "C",
    principal       text NOT NULL COLLATE "C",
    -- The bytes that have arrived. The next part begins here.
    received        bigint NOT NULL,
    -- The parts in their order: the key of the object of each, and its size.
    objects         text[] NOT NULL,
    sizes           bigint[] NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When the last part arrived, or was read.
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, sha256, principal)
);
