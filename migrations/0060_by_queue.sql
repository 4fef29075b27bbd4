-- no-transaction
CREATE INDEX CONCURRENTLY submissions_by_queue ON submissions (queue, number) WHERE queue IS NOT NULL;
