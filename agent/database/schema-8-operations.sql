-- Schema 8: backups and restores. Each has a row from its request until some time after its end.

CREATE TABLE operations (
  id TEXT NOT NULL PRIMARY KEY,
  pod_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  stage TEXT NOT NULL,
  -- Keyed hash of the whole request, which distinguishes a repeated request from another without storing secrets.
  fingerprint TEXT NOT NULL,
  -- The request without the repository.
  request_json TEXT NOT NULL,
  -- Repository and its credentials, encrypted with the key in the agent's home. NULL after the end.
  sealed_repository TEXT,
  progress_json TEXT NOT NULL,
  -- Changes that a restore made to the pod's tree, damage that a backup found, or the folder of a drill.
  journal_json TEXT,
  -- Number of attempts. It is limited, so that an operation that kills the agent is not repeated forever.
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
