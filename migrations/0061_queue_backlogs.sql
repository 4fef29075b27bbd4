-- How many submissions wait in each queue, by tenant: the sums of the rows. A row is a change, as in record_bytes (0054_records.sql), so
-- that concurrent submissions don't wait for each other. The replica that admits adds up the rows from time to time.
CREATE TABLE queue_backlogs (
    queue           text NOT NULL COLLATE "C",
    tenant          text NOT NULL COLLATE "C",
    -- Not counting held ones.
    waiting         bigint NOT NULL,
    held            bigint NOT NULL
);
CREATE INDEX queue_backlogs_of_tenant ON queue_backlogs (queue, tenant);

CREATE FUNCTION count_in_queue() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    unadmitted CONSTANT uuid := '00000000-0000-0000-0000-000000000002';
    waited CONSTANT integer := coalesce(OLD.claimed_by = unadmitted AND OLD.state IN ('QUEUED', 'LAUNCHING'), false)::integer;
    waits CONSTANT integer := coalesce(NEW.claimed_by = unadmitted AND NEW.state IN ('QUEUED', 'LAUNCHING'), false)::integer;
    was_held CONSTANT integer := waited * (OLD.held_at IS NOT NULL)::integer;
    is_held CONSTANT integer := waits * (NEW.held_at IS NOT NULL)::integer;
BEGIN
    IF TG_OP = 'UPDATE' AND waited + waits > 0 AND NEW.queue <> OLD.queue THEN
        INSERT INTO queue_backlogs VALUES (OLD.queue, OLD.tenant, was_held - waited, -was_held),
            (NEW.queue, NEW.tenant, waits - is_held, is_held);
    ELSIF waited <> waits OR was_held <> is_held THEN
        INSERT INTO queue_backlogs VALUES (coalesce(NEW.queue, OLD.queue), coalesce(NEW.tenant, OLD.tenant),
            waits - is_held - waited + was_held, is_held - was_held);
    END IF;
    RETURN NULL;
END
$$;

-- No other row runs the function. The triggers lock out other writers for as long as it takes to count those that wait now.
CREATE TRIGGER count_accepted_in_queue AFTER INSERT ON submissions FOR EACH ROW
    WHEN (NEW.queue IS NOT NULL) EXECUTE FUNCTION count_in_queue();
CREATE TRIGGER count_moved_in_queue AFTER UPDATE OF state, claimed_by, held_at, queue ON submissions FOR EACH ROW
    WHEN (NEW.queue IS NOT NULL AND (OLD.claimed_by = '00000000-0000-0000-0000-000000000002'::uuid
        OR NEW.claimed_by = '00000000-0000-0000-0000-000000000002'::uuid))
    EXECUTE FUNCTION count_in_queue();
CREATE TRIGGER count_deleted_in_queue AFTER DELETE ON submissions FOR EACH ROW
    WHEN (OLD.queue IS NOT NULL AND OLD.claimed_by = '00000000-0000-0000-0000-000000000002'::uuid)
    EXECUTE FUNCTION count_in_queue();

INSERT INTO queue_backlogs
    SELECT queue, tenant, count(*) FILTER (WHERE held_at IS NULL), count(*) FILTER (WHERE held_at IS NOT NULL)
    FROM submissions
    WHERE queue IS NOT NULL AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')
      AND state IN ('QUEUED', 'LAUNCHING') AND claimed_by = '00000000-0000-0000-0000-000000000002'::uuid
    GROUP BY queue, tenant;

CREATE OR REPLACE FUNCTION locked_backlog(of_queue text, most bigint) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    PERFORM lock_tenant('queue', of_queue);
    RETURN least(most, (SELECT coalesce(sum(waiting + held), 0)::bigint FROM queue_backlogs WHERE queue = of_queue));
END
$$;
