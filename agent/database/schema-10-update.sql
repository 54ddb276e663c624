-- Schema 10: state of the agent's update. One row, which the switcher writes, too. The switcher may be of an
-- older or newer version than the agent, so the fields are one JSON document that both versions can read.

CREATE TABLE agent_update (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  row_json TEXT NOT NULL
) STRICT;
