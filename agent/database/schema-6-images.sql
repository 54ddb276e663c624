-- Schema 5: images that this agent has fetched or built, and logins for registries.

CREATE TABLE images (
  -- The engine's name for it: repository@digest, or ours for an image built here.
  reference TEXT NOT NULL PRIMARY KEY,
  -- NULL while it is on its way: what is found under the name after a kill is ours then.
  image_id TEXT,
  size_bytes INTEGER NOT NULL,
  last_used_ms INTEGER NOT NULL
) STRICT;

-- With which login an image was fetched: who has another one asks the registry first. Empty: without any.
CREATE TABLE image_scopes (
  reference TEXT NOT NULL REFERENCES images (reference) ON DELETE CASCADE,
  scope TEXT NOT NULL,
  PRIMARY KEY (reference, scope)
) STRICT;

-- Sealed under the key in the agent's home; gone as soon as the pod is to be removed.
CREATE TABLE pod_registry_auth (
  pod_id TEXT NOT NULL REFERENCES pods (id) ON DELETE CASCADE,
  generation INTEGER NOT NULL,
  sealed TEXT NOT NULL,
  PRIMARY KEY (pod_id, generation)
) STRICT;
