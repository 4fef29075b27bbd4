-- Uploaded files. A file is its content: each tenant has one row for it, however often and under whichever names it is uploaded.
CREATE TABLE files (
    tenant          text NOT NULL COLLATE "C",
    -- In hex.
    sha256          text NOT NULL COLLATE "C",
    size            bigint NOT NULL,
    -- The key of the object that holds the content. Only an object that is named here is a file.
    object          text NOT NULL COLLATE "C",
    -- The principal that uploaded it.
    created_by      text NOT NULL COLLATE "C",
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When it was uploaded last, or when the last submission that used it ended.
    last_used_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, sha256)
);

-- Tells which objects of the store no file has.
CREATE UNIQUE INDEX files_object ON files (object);

-- Which files a live submission uses. The row is written before the submission is accepted, so that its files can't be deleted
-- meanwhile; that of a submission that wasn't accepted is deleted later.
CREATE TABLE file_uses (
    submission_id   text NOT NULL COLLATE "C",
    tenant          text NOT NULL COLLATE "C",
    sha256          text NOT NULL COLLATE "C",
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (submission_id, sha256),
    -- Keeps a file that is used.
    FOREIGN KEY (tenant, sha256) REFERENCES files
);

CREATE INDEX file_uses_by_file ON file_uses (tenant, sha256);
