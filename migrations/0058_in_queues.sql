-- no-transaction
CREATE INDEX CONCURRENTLY submissions_in_queues ON submissions (queue, tenant, queue_rank) WHERE queue IS NOT NULL AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING');
