-- A key belongs to the caller that used it: naming the same owner no longer gives access to it. Callers that aren't
-- authenticated share one principal, so for them the key still belongs to the owner, in this release and in the previous one.
DROP INDEX submissions_idempotency;
