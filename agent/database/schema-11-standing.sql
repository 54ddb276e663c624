-- Pods that are to stand still: stopped, and kept with all their data.
ALTER TABLE pods ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1));
