-- Pods that have worked: the agent restarts them without end. A launch that never worked ends at its limit.
ALTER TABLE pods ADD COLUMN launched INTEGER NOT NULL DEFAULT 1 CHECK (launched IN (0, 1));
