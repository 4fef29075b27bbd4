//! Objects that are kept encrypted, because they contain secrets, until no attempt needs them any more.

/// The objects of an attempt with their secrets, encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The id of the key.
    pub key: String,
    pub text: Vec<u8>,
}

/// `claimed_by` of an unclaimed row with encrypted objects: a session that never exists. To a release that doesn't decrypt, and
/// would launch the driver without its secrets, the row looks claimed.
pub(super) const UNCLAIMED_SEALED: &str = "'00000000-0000-0000-0000-000000000001'::uuid";

/// The condition that no attempt of a row needs its encrypted objects any more: the current one is launched and no other can
/// follow it, or the submission is being killed for good or has ended. Another one can follow each that Kueue admitted.
pub(super) const NEEDLESS: &str =
    "sealed AND no_room IS NULL AND state NOT IN ('QUEUED', 'LAUNCHING') AND (state NOT IN ('PENDING', 'RUNNING')
    OR (retried_infrastructure >= max_retries_infrastructure AND retried_application >= max_retries_application
        AND retried_capacity >= max_retries_capacity AND retried_quota >= max_retries_quota
        AND retried_memory >= coalesce((request #>> '{sparkProperties,spark.sparkgate.memoryGrowth.retries}')::integer, 0)
        AND request #>> '{sparkProperties,spark.sparkgate.restart}' IS NULL
        AND NOT EXISTS (SELECT FROM attempt_overlays o WHERE o.submission_id = s.id AND o.changes @> '[{\"by\": \"kueue\"}]')))";

/// The part of a `WITH` list that removes the encrypted objects of the rows of `moved` that are `needless`. The ids are an array,
/// so that no plan reads the whole table.
pub(super) const DROPPED: &str = "dropped AS (
    UPDATE manifests SET sealed = NULL, sealed_key = NULL
    WHERE submission_id = ANY (ARRAY(SELECT id FROM moved WHERE needless)) AND sealed IS NOT NULL
)";
