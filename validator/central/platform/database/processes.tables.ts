/** Tables of the processes of the central API, what they do once and what they send. */
import type { Stamped } from './columns.ts';

export type MetaTable = { name: string; value: string };

/** One row per living process of the central API (processes/process.service.ts). */
export type CentralProcessesTable = { boot_id: string; beat_at: number };

/** One claim per (account, route, key); see idempotency/idempotency.ts. */
export type IdempotencyTable = {
  account_id: string;
  route: string;
  key: string;
  fingerprint: string;
  state: 'running' | 'finished';
  /** The process that holds a running claim; that of a dead one is anybody's. */
  boot_id: string;
  status: number | null;
  body: string | null;
  created_at: number;
};

export type MailsTable = Stamped & {
  id: string;
  /** Either is null: whose mail it is. */
  account_id: string | null;
  provider_id: string | null;
  /** Unique: what happened once is mailed once. */
  dedupe_key: string;
  kind: string;
  to_address: string;
  /** Subject and bodies, sealed because they hold tokens; empty once nobody needs them. */
  sealed: string;
  /** `kept`: nothing sends mails here, it is read in the outbox. */
  state: 'kept' | 'waiting' | 'sent' | 'failed' | 'expired';
  due_at: number;
  /** What it says has no use from then on. */
  useful_until: number;
  attempts: number;
  last_error: string | null;
};

export type ProcessTables = {
  meta: MetaTable;
  central_processes: CentralProcessesTable;
  idempotency: IdempotencyTable;
  mails: MailsTable;
};
