/** Column types that all tables share, and the tables of the processes themselves. */
import type { Generated } from 'kysely';

/** Boolean column: an integer on both engines, because SQLite has no boolean type. */
export type Flag = 0 | 1;

/** Times in milliseconds UTC. */
export type Stamped = { created_at: number; updated_at: number };

export type MetaTable = { name: string; value: string };

/** Single row. */
export type RunningTimeTable = {
  id: 1;
  /** Milliseconds for which the central API has run, over all its starts. */
  total_ms: number;
  /** Process that adds its running time to the total. */
  boot_id: string;
};

/** One row per live process of the central API. */
export type CentralProcessesTable = { boot_id: string; beat_at: number };

/** One row per account, route and Idempotency-Key. */
export type IdempotencyTable = {
  account_id: string;
  route: string;
  key: string;
  fingerprint: string;
  state: 'running' | 'finished';
  /** Process that runs the request. If that process is dead, another process may take over the claim. */
  boot_id: string;
  status: number | null;
  body: string | null;
  created_at: number;
};

/** Scheduled work: one row per kind and subject. */
export type DueWorkTable = {
  kind: string;
  /** An id, or another name that is unique within the kind. */
  subject: string;
  /** Time for which the work is scheduled, even if the work runs later. */
  due_at: number;
  /** Time of the next attempt: `due_at`, or a later time after a failed attempt. */
  look_at: number;
  /** Number of failed attempts since the work was scheduled. */
  attempts: number;
  last_error: string | null;
};

/** Actions of operators. Rows never change. */
export type AuditEntriesTable = {
  seq: Generated<number>;
  /** Name of the operator's login on the host, or id of the operator's account. */
  operator: string;
  /** `provider.ban` */
  action: string;
  subject_type: string;
  subject_id: string;
  reason: string;
  at_ms: number;
};

/** Differences between the pods on a node and the pods in the database. The newest 10,000 are retained. */
export type DriftTable = {
  seq: Generated<number>;
  at_ms: number;
  /**
   * `pod_lost`: the node had lost a pod and received it again; `pod_left`: the node still ran an ended pod and removed
   * it; `pod_unknown`: the node runs a pod that is not in the database, and the sync does not change the pod.
   */
  kind: 'pod_lost' | 'pod_left' | 'pod_unknown';
  executor_id: string;
  pod_id: string;
};

/** Audits of the ledger that operators requested. The newest 100 are retained. */
export type LedgerProofsTable = {
  seq: Generated<number>;
  /** Process that runs the audit; `running` rows of a dead process have failed. */
  boot_id: string;
  state: 'running' | 'done' | 'failed';
  /** Id of the account that requested the audit. */
  operator: string;
  started_at: number;
  finished_at: number | null;
  /** A LedgerAudit as JSON; null unless the audit is done. */
  result_json: string | null;
  error: string | null;
};

export type PlatformTables = {
  meta: MetaTable;
  running_time: RunningTimeTable;
  central_processes: CentralProcessesTable;
  idempotency: IdempotencyTable;
  due_work: DueWorkTable;
  audit_entries: AuditEntriesTable;
  drift: DriftTable;
  ledger_proofs: LedgerProofsTable;
};
