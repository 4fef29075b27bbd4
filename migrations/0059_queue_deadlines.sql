-- no-transaction
CREATE INDEX CONCURRENTLY submissions_queue_deadline ON submissions (queue_deadline) WHERE queue_deadline IS NOT NULL AND state IN ('QUEUED', 'LAUNCHING');
