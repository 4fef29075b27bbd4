-- What clean-up looks for: attempts that were followed by another, and still have a pod.
CREATE INDEX attempts_with_a_pod ON attempts (finished_at) WHERE pod_uid IS NOT NULL AND pod_deleted_at IS NULL;
