-- Schema 2: SSH access to pods. One row per pod, inserted at its admission and deleted with it.

CREATE TABLE pod_ssh (
  pod_id TEXT NOT NULL PRIMARY KEY REFERENCES pods (id) ON DELETE CASCADE,
  -- An OpenSSH private key file and its fingerprint: the same over reboots and new generations.
  host_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  -- Keys given after the spec, in force while the pod still has that generation. 0: none were.
  keys_json TEXT NOT NULL,
  keys_generation INTEGER NOT NULL
) STRICT;
