-- Schema 9: persistent volumes on this host, with the facts that the engine does not store.

CREATE TABLE volumes (
  id TEXT NOT NULL PRIMARY KEY,
  volume_id TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  -- 1: the removal was requested; the volume is removed once no operation uses it.
  removing INTEGER NOT NULL
) STRICT;
