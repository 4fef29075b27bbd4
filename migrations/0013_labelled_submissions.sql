-- no-transaction
CREATE INDEX CONCURRENTLY submissions_labelled ON submissions USING gin (labels jsonb_path_ops) WHERE labels <> '{}';
