-- Schema 10: how the update of this agent stands. One row; the short-lived switcher, which may be of the
-- version before or after, writes it too, so its fields lie in one document that either reads.

CREATE TABLE agent_update (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  row_json TEXT NOT NULL
) STRICT;
