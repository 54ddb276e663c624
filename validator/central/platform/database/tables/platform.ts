/** Column types that all tables share, and the tables of the processes themselves. */

/** A truth value: neither engine's own type, for SQLite has none. */
export type Flag = 0 | 1;

/** Milliseconds UTC. */
export type Stamped = { created_at: number; updated_at: number };

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

/** One row per kind and subject that is still to happen (schedule/schedule.ts). */
export type DueWorkTable = {
  kind: string;
  /** An id, or a word for what there is only one of. */
  subject: string;
  /** The instant that it counts from, however late it happens. */
  due_at: number;
  /** Not before this: `due_at`, or later after a failure. */
  look_at: number;
  /** Failures since it was set. */
  attempts: number;
  last_error: string | null;
};

export type PlatformTables = {
  meta: MetaTable;
  central_processes: CentralProcessesTable;
  idempotency: IdempotencyTable;
  due_work: DueWorkTable;
};
