-- Schema 7: reboots of the host. The kernel's id of the boot in which a pod's container was last started.

ALTER TABLE pods ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
