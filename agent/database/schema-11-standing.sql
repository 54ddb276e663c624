-- 1: the pod is stopped on request and keeps its container and data.
ALTER TABLE pods ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1));
