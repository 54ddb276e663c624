/** The events of backups and restores (contract 5.2, event row). */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { EVENT_OUTCOMES } from '../delivery/events/event.schemas.ts';
import { recordEvent } from '../delivery/events/event.service.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Actor } from '../platform/identity.ts';

export type Told = {
  table: 'backup_logs' | 'restore_logs';
  id: string;
  account_id: string;
  pod_id: string;
  executor_id: string;
};

/** Records one, in the transaction of what happened. */
export async function tellOperation(
  tx: Db,
  deps: { clock: Clock; random: Random },
  { table, ...operation }: Told,
  told: {
    outcome: (typeof EVENT_OUTCOMES)[number];
    actor: Actor;
    error?: string | null;
    detail?: string;
  },
): Promise<void> {
  const type = table === 'backup_logs' ? 'backup' : 'restore';
  const pod = await findAnyPod(tx, operation.pod_id);
  await recordEvent(tx, deps, {
    accountId: operation.account_id,
    podId: operation.pod_id,
    subEventType: `${type}.${told.outcome}`,
    actor: told.actor,
    reason: told.actor.auth === 'system' ? null : 'user_initiated',
    payload: {
      pod_name: pod?.pod_name ?? null,
      node: operation.executor_id,
      ...(told.error ? { error: told.error } : {}),
      ...(told.detail === undefined ? {} : { detail: told.detail }),
      [type === 'backup' ? 'backup_log_id' : 'restore_log_id']: operation.id,
    },
  });
}
