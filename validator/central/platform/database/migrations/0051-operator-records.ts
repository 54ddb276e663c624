/**
 * Tables for the differences that the pod sync has found between the pods of a node and the database, and for runs of
 * the ledger verification.
 */
import type { SqlDialect } from '../sql-dialects.ts';

export const operatorRecords = ({ int, serial, tableEnd }: SqlDialect): string[] => [
  `create table drift (
    seq ${serial},
    at_ms ${int} not null,
    kind text not null check (kind in ('pod_lost', 'pod_left', 'pod_unknown')),
    executor_id text not null,
    pod_id text not null
  ) ${tableEnd}`,
  `create table ledger_proofs (
    seq ${serial},
    boot_id text not null,
    state text not null check (state in ('running', 'done', 'failed')),
    operator text not null,
    started_at ${int} not null,
    finished_at ${int},
    result_json text,
    error text
  ) ${tableEnd}`,
];
