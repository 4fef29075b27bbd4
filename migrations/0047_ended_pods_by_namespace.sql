-- no-transaction
CREATE INDEX CONCURRENTLY submissions_with_an_ended_pod_by_namespace ON submissions (namespace, finished_at) WHERE finished_at IS NOT NULL AND pod_uid IS NOT NULL AND pod_deleted_at IS NULL;
