-- Which properties of a submission aren't of its request: their keys by origin. NULL for submissions of earlier releases.
ALTER TABLE submissions ADD COLUMN origins jsonb;
