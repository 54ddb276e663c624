-- Schema 3: changing a pod in place. Each column is NULL unless that part of a change exists.

-- A newer generation whose image is being fetched while the present generation runs.
ALTER TABLE pods ADD COLUMN staged_json TEXT;
-- The generation to roll back to while the present generation is on trial.
ALTER TABLE pods ADD COLUMN fallback_json TEXT;
-- The newest generation, if it failed and an older generation runs.
ALTER TABLE pods ADD COLUMN refused_json TEXT;
