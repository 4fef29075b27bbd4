-- The key with which an installation signs the identity of its driver pods: 244 random bits.
ALTER TABLE installation ADD COLUMN key bytea NOT NULL
    DEFAULT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');

-- Which cluster this database belongs to: the uids of kube-system and of the served namespaces, as far as they may be read.
CREATE TABLE cluster_namespaces (
    namespace       text PRIMARY KEY COLLATE "C",
    uid             text NOT NULL
);
