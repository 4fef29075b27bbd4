-- What the record of a submission takes: its request, its objects, and its logs that are kept. NULL for those that an earlier release
-- accepted: they count as nothing.
ALTER TABLE submissions ADD COLUMN record_bytes bigint;

-- What the records of each tenant take: the sum of its rows. A row is a change, because one row for each tenant would make all
-- concurrent submissions wait for each other. Clean-up adds up the rows of a tenant from time to time.
CREATE TABLE record_bytes (
    tenant          text NOT NULL,
    bytes           bigint NOT NULL
);
CREATE INDEX record_bytes_of_tenant ON record_bytes (tenant);

CREATE OR REPLACE FUNCTION forget_deleted_submissions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM submission_events WHERE submission_id IN (SELECT id FROM deleted);
    DELETE FROM manifests WHERE submission_id IN (SELECT id FROM deleted);
    INSERT INTO record_bytes
        SELECT tenant, -sum(deleted.record_bytes) FROM deleted GROUP BY tenant HAVING sum(deleted.record_bytes) > 0;
    RETURN NULL;
END
$$;

-- The functions below count what a tenant has while they hold its lock, which lasts until the end of the transaction. They are
-- volatile: a statement of such a function sees what others committed before they released the lock, while the statement that calls
-- it may have begun before.
CREATE FUNCTION lock_tenant(kind text, of_tenant text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended(kind || ' of ' || of_tenant, 0))
$$;

-- How many submissions of a tenant wait to be launched, counting up to `most`.
CREATE FUNCTION locked_queued(of_tenant text, most bigint) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    PERFORM lock_tenant('submissions', of_tenant);
    RETURN (SELECT count(*) FROM (
        SELECT FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING') AND tenant = of_tenant LIMIT most) AS waiting);
END
$$;

CREATE FUNCTION locked_record_bytes(of_tenant text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_tenant('submissions', of_tenant);
    RETURN (SELECT coalesce(sum(bytes), 0)::bigint FROM record_bytes WHERE tenant = of_tenant);
END
$$;

-- How many webhooks a tenant has, not counting those of single submissions.
CREATE FUNCTION locked_webhooks(of_tenant text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_tenant('webhooks', of_tenant);
    RETURN (SELECT count(*) FROM webhooks WHERE submission_id IS NULL AND tenant = of_tenant);
END
$$;

-- How many bytes the files of a tenant have, and the parts of its uploads, but for those of one file.
CREATE FUNCTION locked_file_bytes(of_tenant text, but_uploads_of text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_tenant('files', of_tenant);
    RETURN (coalesce((SELECT sum(size) FROM files WHERE tenant = of_tenant), 0)
        + coalesce((SELECT sum(received) FROM file_uploads
            WHERE tenant = of_tenant AND sha256 IS DISTINCT FROM but_uploads_of), 0))::bigint;
END
$$;

GRANT EXECUTE ON FUNCTION lock_tenant(text, text), locked_queued(text, bigint), locked_record_bytes(text), locked_webhooks(text),
    locked_file_bytes(text, text) TO PUBLIC;
