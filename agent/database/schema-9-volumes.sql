-- Schema 9: persistent volumes on this host, with the facts that the engine does not store.

CREATE TABLE volumes (
  id TEXT NOT NULL PRIMARY KEY,
  volume_id TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  -- 1: its removal was asked for; it goes as soon as nothing works on it.
  removing INTEGER NOT NULL
) STRICT;
