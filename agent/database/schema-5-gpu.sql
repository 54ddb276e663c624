-- Schema 5: health of GPUs, retained across restarts of the agent.

-- Cards that answered since the host booted: a card of this table that does not answer now is lost.
CREATE TABLE gpu_cards (
  uuid TEXT NOT NULL PRIMARY KEY,
  -- `0000:1b:00`, empty if the driver does not report it.
  pci TEXT NOT NULL
) STRICT;

-- Reasons why a card accepts no new pods. A card may have one cordon from each source.
CREATE TABLE gpu_cordons (
  -- The UUID of a card or MIG device; for Xids the PCI id, because the kernel's log has no UUIDs.
  subject TEXT NOT NULL,
  -- inventory: the driver's findings; presence: the card does not answer; xid: the kernel's log.
  source TEXT NOT NULL,
  reason TEXT NOT NULL,
  message TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  UNIQUE (subject, source)
) STRICT;

-- Errors that the driver wrote to the kernel's log, and the pod that had the card.
CREATE TABLE gpu_xids (
  boot_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  pci TEXT NOT NULL,
  code INTEGER NOT NULL,
  pod_id TEXT,
  UNIQUE (boot_id, sequence)
) STRICT;
CREATE INDEX gpu_xids_by_pci ON gpu_xids (pci, at_ms);
