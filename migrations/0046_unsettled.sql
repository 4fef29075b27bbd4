-- no-transaction
CREATE INDEX CONCURRENTLY submissions_unsettled ON submissions (finished_at) WHERE NOT settled AND finished_at IS NOT NULL;
