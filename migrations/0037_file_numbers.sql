-- The place of a file in the list of its tenant. The table is small: this rewrites it at once.
ALTER TABLE files ADD COLUMN number bigint NOT NULL GENERATED ALWAYS AS IDENTITY;

CREATE UNIQUE INDEX files_by_number ON files (tenant, number);
