-- Schema 9: copies of volumes that outlive pods, as far as the engine's own list does not tell.

CREATE TABLE volumes (
  id TEXT NOT NULL PRIMARY KEY,
  volume_id TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  -- 1: its removal was asked for; it goes as soon as nothing works on it.
  removing INTEGER NOT NULL
) STRICT;
