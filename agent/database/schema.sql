-- Schema 1 of the agent's store. Times are integer milliseconds since the epoch. NULL means "none yet".

CREATE TABLE pods (
  id TEXT NOT NULL PRIMARY KEY,
  desired TEXT NOT NULL,
  phase TEXT NOT NULL,
  phase_since_ms INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  observed_generation INTEGER NOT NULL,
  spec_json TEXT NOT NULL,
  spec_hash TEXT NOT NULL,
  image_id TEXT,
  image_digest TEXT,
  container_id TEXT,
  reason TEXT,
  message TEXT NOT NULL,
  -- Failures and exits in a row since the pod was last healthy: the exponent of the backoff.
  attempts INTEGER NOT NULL,
  restart_count INTEGER NOT NULL,
  -- Start attempts in a row that found a host port taken.
  port_conflicts INTEGER NOT NULL,
  next_retry_ms INTEGER,
  reboots_requested INTEGER NOT NULL,
  reboots_done INTEGER NOT NULL,
  -- Number of the reboot in progress, and the time at which the container had been started before it.
  reboot_target INTEGER NOT NULL,
  reboot_from_ms INTEGER NOT NULL,
  last_exit_json TEXT,
  conditions_json TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL
) STRICT;

-- The exclusive right of a pod to a GPU (key: UUID), a host port (key: number) or a subnet (key: CIDR).
CREATE TABLE leases (
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  pod_id TEXT NOT NULL,
  -- held: by the pod; cooling: not leased before until_ms; dirty: not leased until the processes of the earlier pod
  -- have ended.
  state TEXT NOT NULL,
  until_ms INTEGER NOT NULL,
  -- Internal port of the pod that a host port serves; empty for GPUs and subnets.
  slot TEXT NOT NULL,
  UNIQUE (kind, key)
) STRICT;
CREATE INDEX leases_by_pod ON leases (pod_id);

-- The last transitions of each pod, which show why a pod is not running.
CREATE TABLE pod_events (
  id INTEGER PRIMARY KEY,
  pod_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  phase TEXT NOT NULL,
  reason TEXT,
  message TEXT NOT NULL
) STRICT;
CREATE INDEX pod_events_by_pod ON pod_events (pod_id, id);
