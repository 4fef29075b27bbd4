-- For clients that use the APIs of other servers.
ALTER TABLE submissions
    -- The client's own id of the submission, unique in its tenant.
    ADD COLUMN client_id        text COLLATE "C",
    -- The API that it was submitted with: livy or kubeflow. NULL for those of the gateway and of Spark.
    ADD COLUMN wire             text COLLATE "C",
    -- When a client of Livy's API deleted it: that API doesn't have it any more.
    ADD COLUMN livy_deleted_at  timestamptz;
