-- A copy of a database has the same installation, and with it the same folders in the stores of files and logs. `sparkgate
-- adopt-cluster` makes it another generation, which neither writes nor deletes in stores that belong to the one before, and which
-- tells webhooks nothing about the submissions that it was copied with.
ALTER TABLE installation
    -- Null for the first one, whose generation is the installation's id.
    ADD COLUMN generation uuid,
    -- That of the database that this one is a copy of.
    ADD COLUMN copy_of uuid,
    -- Submissions up to this number, which begins with 0, are those of the original.
    ADD COLUMN copied_until bigint NOT NULL DEFAULT -1;
