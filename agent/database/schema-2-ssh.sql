-- Schema 2: SSH access to pods. One row per pod, inserted at its admission and deleted with it.

CREATE TABLE pod_ssh (
  pod_id TEXT NOT NULL PRIMARY KEY REFERENCES pods (id) ON DELETE CASCADE,
  -- An OpenSSH private key file and its fingerprint: the same over reboots and new generations.
  host_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  -- Keys that were set after the spec. They apply while the pod has this generation. 0: no keys were set.
  keys_json TEXT NOT NULL,
  keys_generation INTEGER NOT NULL
) STRICT;
