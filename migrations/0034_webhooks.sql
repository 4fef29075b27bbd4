-- Subscriptions to state changes: the URLs that they are sent to.
CREATE TABLE webhooks (
    id              text PRIMARY KEY COLLATE "C",
    tenant          text NOT NULL COLLATE "C",
    -- The principal that created it.
    principal       text NOT NULL COLLATE "C",
    url             text NOT NULL,
    -- What is sent: `cloudevents` or `openlineage`.
    format          text NOT NULL,
    -- Only changes of submissions of the same principal.
    own             boolean NOT NULL,
    -- Only changes of this submission, whose request named the URL.
    submission_id   text COLLATE "C",
    -- Further criteria. All have to match; empty or NULL matches everything.
    states          text[] NOT NULL,
    name_prefix     text COLLATE "C",
    owner           text,
    namespace       text,
    labels          jsonb NOT NULL,
    -- The secrets as JSON, encrypted if the gateway has keys.
    secrets         bytea NOT NULL,
    -- The id of the key with which they are encrypted.
    secrets_key     text COLLATE "C",
    -- Until then, messages are signed with the previous secret, too.
    previous_until  timestamptz,
    -- Only changes with higher numbers.
    since           bigint NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX webhooks_of_tenant ON webhooks (tenant, created_at) WHERE submission_id IS NULL;
CREATE INDEX webhooks_of_submission ON webhooks (submission_id) WHERE submission_id IS NOT NULL;

-- Changes that were sent or are to be sent. There is no foreign key: deliveries of a deleted webhook are never sent, and are
-- cleaned up.
CREATE TABLE webhook_deliveries (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id      text NOT NULL COLLATE "C",
    submission_id   text NOT NULL COLLATE "C",
    -- The number of the event.
    sequence        bigint NOT NULL,
    -- The event with what is known of its submission, so that it outlives both.
    event           jsonb NOT NULL,
    status          text NOT NULL DEFAULT 'pending'
        CONSTRAINT webhook_deliveries_status CHECK (status IN ('pending', 'delivered', 'dead')),
    tries           integer NOT NULL DEFAULT 0,
    next_try_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When it was queued, for the first time or again. It is given up some time after that.
    queued_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at        timestamptz,
    -- The result of the last try.
    http_status     integer,
    error           text
);

CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, id);
-- What is due.
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (webhook_id, next_try_at) WHERE status = 'pending';
-- Deliveries of one submission wait for each other.
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook_id, submission_id, sequence) WHERE status = 'pending';
-- What is cleaned up.
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE status <> 'pending';

-- Events up to this number are queued for all webhooks.
CREATE TABLE webhook_cursor (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last            bigint NOT NULL
);
INSERT INTO webhook_cursor (last) SELECT last FROM event_sequence;
