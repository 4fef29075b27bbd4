-- no-transaction
CREATE INDEX CONCURRENTLY submissions_by_tenant ON submissions (tenant, number) WHERE tenant <> 'default';
