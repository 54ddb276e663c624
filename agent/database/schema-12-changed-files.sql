-- Files that changed while a backup read them: their number, and the first of their paths.
ALTER TABLE operations ADD COLUMN changed_json TEXT;
