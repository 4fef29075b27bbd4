-- A submission's row is written at each change of its state, and its request never again: what is over a kilobyte is kept
-- beside the row (TOAST), so that a change writes some hundred bytes. Objects are kept once and deleted whole: the cheaper
-- compression is enough, where the server has it.
ALTER TABLE submissions SET (toast_tuple_target = 1024);
DO $$
BEGIN
    ALTER TABLE manifests ALTER COLUMN objects SET COMPRESSION lz4;
EXCEPTION WHEN OTHERS THEN
    NULL;
END
$$;
