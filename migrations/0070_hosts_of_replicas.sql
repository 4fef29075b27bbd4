-- The host, or the pod, in which a replica runs, for operators. Null for a replica of an older release.
ALTER TABLE replica_keys ADD COLUMN host text;
