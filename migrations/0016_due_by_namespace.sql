-- no-transaction
CREATE INDEX CONCURRENTLY submissions_due_by_namespace ON submissions (namespace, number) WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING');
