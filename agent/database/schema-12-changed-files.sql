-- Files that changed while a backup read them: their number, and the first paths.
ALTER TABLE operations ADD COLUMN changed_json TEXT;
