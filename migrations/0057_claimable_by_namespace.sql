-- no-transaction
CREATE INDEX CONCURRENTLY submissions_claimable_by_namespace ON submissions (namespace, number) WHERE state NOT IN ('PENDING', 'RUNNING', 'FINISHED', 'FAILED', 'KILLED', 'ERROR', 'LOST') AND (state = 'KILLING' OR claimed_by IS DISTINCT FROM '00000000-0000-0000-0000-000000000002'::uuid);
