-- Identifies the history of the data: the server's system identifier, its timeline, which each promotion and each recovery to a
-- point in time begins anew, and the database. After a failover to a standby that lacked the last commits, or a restore, it is
-- another one. NULL if the server doesn't say. Any role may ask for these.
CREATE FUNCTION database_history() RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || oid
            FROM pg_control_system(), pg_database WHERE datname = current_database());
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;
GRANT EXECUTE ON FUNCTION database_history() TO PUBLIC;

-- The lowest number of a claim on this timeline, so that no claim has the number of one that a failover lost.
CREATE FUNCTION lowest_claim_epoch() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (('x' || split_part(database_history(), '/', 2))::bit(32)::bigint - 1) << 24;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;
GRANT EXECUTE ON FUNCTION lowest_claim_epoch() TO PUBLIC;

ALTER TABLE event_sequence
    -- The history that numbers are given in. NULL until a release that knows it gives the next.
    ADD COLUMN history text,
    -- When it began, numbers above `lost_after` may have been given in the history before, and were lost. So the next number is
    -- above `lost_until`.
    ADD COLUMN lost_after bigint,
    ADD COLUMN lost_until bigint;
