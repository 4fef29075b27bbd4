-- Every change of a state writes an event and then its number: one key less to write each time. Events are only ever looked
-- up by their submission, by their number, or because they have none yet. The release before reads the table to number them,
-- as long as it runs beside this one.
ALTER TABLE submission_events DROP CONSTRAINT submission_events_pkey;
ALTER TABLE submission_events ADD CONSTRAINT submission_events_pkey PRIMARY KEY USING INDEX submission_events_key;
DROP INDEX submission_events_of;

-- Events and objects are written by the statement that writes their submission's row, so there is nothing that a foreign key
-- could find; it would look the row up and lock it for each of them.
ALTER TABLE submission_events DROP CONSTRAINT submission_events_submission_id_fkey;
ALTER TABLE manifests DROP CONSTRAINT manifests_submission_id_fkey;

-- What the foreign keys did when a submission was deleted.
CREATE FUNCTION forget_deleted_submissions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM submission_events WHERE submission_id IN (SELECT id FROM deleted);
    DELETE FROM manifests WHERE submission_id IN (SELECT id FROM deleted);
    RETURN NULL;
END
$$;
CREATE TRIGGER submissions_deleted AFTER DELETE ON submissions
    REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION forget_deleted_submissions();
