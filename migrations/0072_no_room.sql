-- Attempts that follow because the cluster, or a quota, had no room for the driver: how many may, and how many did. `no_room` is the budget,
-- `capacity` or `quota`, of the attempt that follows the kill of a driver that didn't start in time; NULL if none follows.
ALTER TABLE submissions
    ADD COLUMN max_retries_capacity integer NOT NULL DEFAULT 0,
    ADD COLUMN max_retries_quota    integer NOT NULL DEFAULT 0,
    ADD COLUMN retried_capacity     integer NOT NULL DEFAULT 0,
    ADD COLUMN retried_quota        integer NOT NULL DEFAULT 0,
    ADD COLUMN no_room              text;
