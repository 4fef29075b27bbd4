-- no-transaction
CREATE UNIQUE INDEX CONCURRENTLY submissions_client_id ON submissions (client_id, tenant) WHERE client_id IS NOT NULL;
