-- no-transaction
CREATE INDEX CONCURRENTLY submissions_of_livy ON submissions (number) WHERE wire = 'livy' AND livy_deleted_at IS NULL;
