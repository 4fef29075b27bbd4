-- What a launch needs and readers of the database must not see: the objects with their secrets, encrypted, until no attempt needs
-- them any more. `objects` has them without secrets then.
ALTER TABLE manifests
    ADD COLUMN sealed       bytea,
    -- The id of the key with which they are encrypted.
    ADD COLUMN sealed_key   text COLLATE "C";
-- Encrypted bytes can't be compressed.
ALTER TABLE manifests ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- Whether objects of this submission are, or were, encrypted.
ALTER TABLE submissions ADD COLUMN sealed boolean NOT NULL DEFAULT false;
