-- Schema 9: backups and restores. Each has a row from its request until some time after its end.

CREATE TABLE operations (
  id TEXT NOT NULL PRIMARY KEY,
  pod_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  stage TEXT NOT NULL,
  -- Keyed hash of the whole request: a repeat is told from another one without keeping secrets.
  fingerprint TEXT NOT NULL,
  -- Without the repository.
  request_json TEXT NOT NULL,
  -- Sealed under the key in the agent's home; gone with the end.
  sealed_repository TEXT,
  progress_json TEXT NOT NULL,
  -- Of a restore: what was done to the pod's tree.
  journal_json TEXT,
  -- How often it was begun: an agent that dies of it must not begin it for ever.
  attempts INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  snapshot_id TEXT,
  quality TEXT,
  error_json TEXT,
  log_json TEXT NOT NULL,
  started_ms INTEGER NOT NULL,
  heartbeat_ms INTEGER NOT NULL,
  finished_ms INTEGER
) STRICT;

-- At most one unfinished operation per pod.
CREATE UNIQUE INDEX operations_active ON operations (pod_id) WHERE finished_ms IS NULL;
CREATE INDEX operations_by_end ON operations (finished_ms, id);
