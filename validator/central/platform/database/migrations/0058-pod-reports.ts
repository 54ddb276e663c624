/** Reports of renters on pods that are not what was offered. */
import type { SqlDialect } from '../sql-dialects.ts';

export const podReports = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table pod_reports (
    id text primary key,
    pod_id text not null references pods (id),
    account_id text not null references accounts (id),
    executor_id text not null references executors (id),
    reason text not null,
    description text,
    consent ${int} not null,
    state text not null check (state in ('open', 'examining', 'confirmed', 'not_confirmed', 'expired')),
    validator_hotkey text,
    claimed_until ${int},
    attempts ${int} not null,
    refund_uusd ${int} not null,
    evidence_json text,
    created_at ${int} not null,
    updated_at ${int} not null,
    ended_at ${int}
  ) ${tableEnd}`,
  'create unique index pod_reports_open on pod_reports (pod_id) where ended_at is null',
  'create index pod_reports_waiting on pod_reports (created_at) where ended_at is null',
  'create index pod_reports_of_account on pod_reports (account_id, created_at)',
];
