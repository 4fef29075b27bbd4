-- Contents of the access file in the order in which replicas first read them. A replica whose file has the newest content has its
-- number; one with another content has the number that it got when it read that. Clocks say nothing about this order.
CREATE TABLE access_generations (
    number          bigint PRIMARY KEY,
    -- Of the content, in hex.
    digest          text NOT NULL,
    read_at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE webhooks
    -- Later changes aren't sent. NULL for one without an end.
    ADD COLUMN expires_at timestamptz,
    -- Since when the access file lacks its tenant.
    ADD COLUMN tenant_gone_at timestamptz;
ALTER TABLE api_keys ADD COLUMN tenant_gone_at timestamptz;
