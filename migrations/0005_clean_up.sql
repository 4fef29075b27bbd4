-- What an ended submission still has in the cluster, and until when it is kept.
ALTER TABLE submissions
    -- The driver pod was deleted after its end, and with it all that it owned.
    ADD COLUMN pod_deleted_at timestamptz,
    -- Its pod could not be deleted: not to be tried before.
    ADD COLUMN clean_up_not_before timestamptz;

-- What clean-up looks for, oldest first: ended submissions with a pod, and ended submissions.
CREATE INDEX submissions_with_an_ended_pod ON submissions (finished_at)
    WHERE finished_at IS NOT NULL AND pod_uid IS NOT NULL AND pod_deleted_at IS NULL;
CREATE INDEX submissions_ended ON submissions (finished_at) WHERE finished_at IS NOT NULL;
