-- Time for which a lease cools after its release, ms; 0: the default of its kind. Until this schema every pod had its own
-- SSH host key, so the SSH ports that are leased now cool for a day.
ALTER TABLE leases ADD COLUMN cooling_ms INTEGER NOT NULL DEFAULT 0;
UPDATE leases SET cooling_ms = 86400000 WHERE kind = 'port' AND slot = '22';
