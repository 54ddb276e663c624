-- Schema 6: images that this agent has fetched or built, and logins for registries.

CREATE TABLE images (
  -- The engine's name for the image: repository@digest, or the agent's name for an image built on this host.
  reference TEXT NOT NULL PRIMARY KEY,
  -- NULL while the image is being fetched or built: after a kill of the agent, an image under this name is the
  -- agent's.
  image_id TEXT,
  size_bytes INTEGER NOT NULL,
  last_used_ms INTEGER NOT NULL
) STRICT;

-- Logins with which an image was fetched; for a pod with another login, the agent queries the registry first.
-- Empty: no login was needed.
CREATE TABLE image_scopes (
  reference TEXT NOT NULL REFERENCES images (reference) ON DELETE CASCADE,
  scope TEXT NOT NULL,
  PRIMARY KEY (reference, scope)
) STRICT;

-- Registry logins, encrypted with the key in the agent's home. Deleted when the removal of the pod begins.
CREATE TABLE pod_registry_auth (
  pod_id TEXT NOT NULL REFERENCES pods (id) ON DELETE CASCADE,
  generation INTEGER NOT NULL,
  sealed TEXT NOT NULL,
  PRIMARY KEY (pod_id, generation)
) STRICT;
