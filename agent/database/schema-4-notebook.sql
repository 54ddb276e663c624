-- Schema 4: notebook servers in pods. One row per pod for which a server was requested, deleted with the pod.

CREATE TABLE pod_notebooks (
  pod_id TEXT NOT NULL PRIMARY KEY REFERENCES pods (id) ON DELETE CASCADE,
  -- Number of the request. Work that was begun for an earlier request is dropped.
  request INTEGER NOT NULL,
  internal_port INTEGER NOT NULL,
  token TEXT NOT NULL,
  status TEXT NOT NULL,
  step TEXT,
  reason TEXT,
  message TEXT NOT NULL,
  path TEXT,
  -- The engine's id of the process that was started last, so that a later agent process can find or end it.
  exec_id TEXT,
  -- Consecutive failures since the server last ran for a while.
  attempts INTEGER NOT NULL,
  next_try_ms INTEGER NOT NULL,
  -- Time by which the server must answer while it is being started.
  deadline_ms INTEGER NOT NULL,
  since_ms INTEGER NOT NULL
) STRICT;
