-- The name under which a submission uses a file, and that of the last one which has ended. A file is its content, and has no name itself.
ALTER TABLE file_uses ADD COLUMN name text;
ALTER TABLE files ADD COLUMN name text;
