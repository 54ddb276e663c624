/** How a removal begins, whoever wants it; the sync finishes it on the node. */
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import type { Actor } from '../auth/identity.ts';
import type { Db, Pod } from '../db/tables.ts';
import { recordEvent } from '../events/event.service.ts';
import { statusOf } from './pod.row.ts';
import { sourcesOf, wirePhase } from './pod.state.ts';
import { changePod } from './pod.store.ts';

export type RemovalReason = 'user_initiated' | 'scheduled_termination';

/** The row as it is now. The hold ends here: nothing is charged for a pod whose deletion was accepted. */
export async function beginRemoval(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
  { actor, reason }: { actor: Actor; reason: RemovalReason },
): Promise<Pod> {
  const nowMs = deps.clock.now();
  const change = {
    state: 'deleting',
    phase: wirePhase('deleting') ?? '',
    reason_code: reason,
    hold_uusd: 0,
    delete_requested_at: nowMs,
    updated_at: nowMs,
  };
  if (!(await changePod(tx, pod.id, sourcesOf('deleting'), change))) {
    throw new ApiError('pod_state_conflict', 'The pod is being deleted already');
  }
  await recordEvent(tx, deps, {
    accountId: pod.account_id,
    podId: pod.id,
    eventType: 'pod-delete',
    subEventType: 'pod-delete.requested',
    actor,
    fromStatus: statusOf(pod),
    toStatus: 'DELETING',
    reason,
    payload: { pod_name: pod.pod_name, node: pod.executor_id },
  });
  return { ...pod, ...change };
}
