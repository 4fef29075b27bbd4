-- Whether the usage of an ended submission is added to the sums of each day. A time up to which all are settled would be wrong for
-- those that end after the clock of the database went back. NULL for submissions from before: they are settled if they ended before
-- `usage_settled.until`.
ALTER TABLE submissions ADD COLUMN settled boolean;
ALTER TABLE submissions ALTER COLUMN settled SET DEFAULT false;

-- Grows whenever usage is settled by marks. The release before knows none, and would settle what is settled: it settles nothing
-- while it runs beside this one.
ALTER TABLE usage_settled ADD COLUMN marks bigint NOT NULL DEFAULT 0;
CREATE FUNCTION settle_by_marks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.until <> OLD.until AND NEW.marks = OLD.marks THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER usage_settled_by_marks BEFORE UPDATE ON usage_settled FOR EACH ROW EXECUTE FUNCTION settle_by_marks();
