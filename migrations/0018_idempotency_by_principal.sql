-- no-transaction
CREATE UNIQUE INDEX CONCURRENTLY submissions_idempotency_by_principal ON submissions (owner, idempotency_key, tenant, principal) WHERE idempotency_key IS NOT NULL;
