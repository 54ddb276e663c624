-- Schema 4: notebook servers in pods. One row per pod for which a server was requested, deleted with the pod.

CREATE TABLE pod_notebooks (
  pod_id TEXT NOT NULL PRIMARY KEY REFERENCES pods (id) ON DELETE CASCADE,
  -- Counts the requests: what was begun for an earlier one is dropped.
  request INTEGER NOT NULL,
  internal_port INTEGER NOT NULL,
  token TEXT NOT NULL,
  status TEXT NOT NULL,
  step TEXT,
  reason TEXT,
  message TEXT NOT NULL,
  path TEXT,
  -- What the engine calls the process last started for it, so that another agent finds or ends it.
  exec_id TEXT,
  -- Failures in a row since it last ran for a while.
  attempts INTEGER NOT NULL,
  next_try_ms INTEGER NOT NULL,
  -- Until when it has to answer while it is being brought up.
  deadline_ms INTEGER NOT NULL,
  since_ms INTEGER NOT NULL
) STRICT;
