-- Files of the submitter that this submission can name: templates, configuration. Fixed with the names, for the same reason.
ALTER TABLE submissions ADD COLUMN submitter_files jsonb NOT NULL DEFAULT '{}';
