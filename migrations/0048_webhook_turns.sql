-- The webhooks with pending deliveries that aren't being served, and when the first of these is due. A release that doesn't know this
-- table queues deliveries without it: the replica that sends looks for such webhooks when it begins, and again and again.
CREATE TABLE webhook_turns (
    webhook_id      text PRIMARY KEY COLLATE "C",
    tenant          text NOT NULL COLLATE "C",
    -- Its receiver took no message the last time.
    is_failing      boolean NOT NULL DEFAULT false,
    due_at          timestamptz NOT NULL
);

CREATE INDEX webhook_turns_due ON webhook_turns (tenant, is_failing, due_at);
