-- Secrets of pods, encrypted with the key in the agent's home. They are deleted when the removal of the pod
-- begins.
CREATE TABLE pod_secrets (
  pod_id TEXT NOT NULL REFERENCES pods (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  sealed TEXT NOT NULL,
  PRIMARY KEY (pod_id, name)
) STRICT;
