-- 1: the pod has worked, so the agent restarts it without a limit. A pod that has never worked is not
-- restarted beyond the launch limit.
ALTER TABLE pods ADD COLUMN launched INTEGER NOT NULL DEFAULT 1 CHECK (launched IN (0, 1));
