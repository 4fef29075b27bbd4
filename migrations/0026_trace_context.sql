-- The trace that a submission belongs to, as W3C Trace Context writes it: traceparent, and after a space tracestate. NULL without
-- one, and while traces are off.
ALTER TABLE submissions ADD COLUMN trace_context text;
