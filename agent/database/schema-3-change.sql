-- Schema 3: changing a pod in place. Each column is NULL unless that part of a change exists.

-- A newer generation whose image is being fetched while the present one goes on.
ALTER TABLE pods ADD COLUMN staged_json TEXT;
-- The generation to return to while the present one still has to prove itself.
ALTER TABLE pods ADD COLUMN fallback_json TEXT;
-- The newest generation, when it was given up and an older one runs.
ALTER TABLE pods ADD COLUMN refused_json TEXT;
