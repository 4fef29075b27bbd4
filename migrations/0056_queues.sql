-- Queues of the access file: a submission in a queue is launched once it is admitted.
ALTER TABLE submissions
    -- NULL without a queue; the columns below are NULL, too.
    ADD COLUMN queue                    text COLLATE "C",
    ADD COLUMN priority                 integer,
    -- Its place among those of its tenant that wait for admission, the lowest first. NULL if it doesn't wait for that: it is admitted, or
    -- held.
    ADD COLUMN queue_rank               bigint,
    -- What it may reserve on nodes in all: its driver, and as many executors as its queue counts. `cost_extended` has the amounts of
    -- extended resources by name.
    ADD COLUMN cost_pods                integer,
    ADD COLUMN cost_millicores          bigint,
    ADD COLUMN cost_memory_bytes        bigint,
    ADD COLUMN cost_extended            jsonb,
    -- The driver's part of that. Once its pod is seen, the requests of the pod count.
    ADD COLUMN cost_driver_millicores   bigint,
    ADD COLUMN cost_driver_memory_bytes bigint,
    -- Once executors are seen, they count instead of those above.
    ADD COLUMN cost_grows               boolean,
    -- In seconds, and when it is over.
    ADD COLUMN queue_timeout            integer,
    ADD COLUMN queue_deadline           timestamptz,
    -- When the current attempt was admitted.
    ADD COLUMN admitted_at              timestamptz,
    -- Since when it is held, by whom and why; also without a queue.
    ADD COLUMN held_at                  timestamptz,
    ADD COLUMN held_by                  text,
    ADD COLUMN held_reason              text;

-- Queues that aren't in their normal state.
CREATE TABLE queue_states (
    queue           text PRIMARY KEY COLLATE "C",
    state           text NOT NULL,
    changed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by      text NOT NULL,
    reason          text,
    CONSTRAINT queue_states_state CHECK (state IN ('paused', 'draining'))
);

-- Grows with each round of admissions: a decision that was made for an older round admits nothing.
CREATE TABLE queue_rounds (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version         bigint NOT NULL DEFAULT 0
);
INSERT INTO queue_rounds DEFAULT VALUES;

-- The last admissions, for estimates. Old ones are deleted.
CREATE TABLE queue_admissions (
    queue           text NOT NULL COLLATE "C",
    tenant          text NOT NULL COLLATE "C",
    admitted_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    waited_seconds  double precision NOT NULL
);
CREATE INDEX queue_admissions_of_tenant ON queue_admissions (queue, tenant, admitted_at);
CREATE INDEX queue_admissions_by_time ON queue_admissions (admitted_at);

-- How many submissions wait in a queue, held ones included, counting up to `most`, under the lock of the queue (0054_records.sql).
CREATE FUNCTION locked_backlog(of_queue text, most bigint) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    PERFORM lock_tenant('queue', of_queue);
    RETURN (SELECT count(*) FROM (
        SELECT FROM submissions
        WHERE queue IS NOT NULL AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING') AND queue = of_queue
          AND state IN ('QUEUED', 'LAUNCHING') AND claimed_by = '00000000-0000-0000-0000-000000000002'::uuid
        LIMIT most) AS waiting);
END
$$;
GRANT EXECUTE ON FUNCTION locked_backlog(text, bigint) TO PUBLIC;
