/** Events of pods: each under the pod's name and node, and with the status that it had. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type RecordedEvent, recordEvent } from '../../delivery/events/event.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { statusOf } from './pod.row.ts';
import type { WireStatus } from './pod.state.ts';

export type PodEvent = Pick<RecordedEvent, 'subEventType' | 'actor' | 'reason'> & {
  /** What it has come to; by default it stays what it was. */
  toStatus?: WireStatus;
  /** What the event says beside the pod's name and node. */
  facts?: Readonly<Record<string, unknown>>;
};

/** Of what comes to a pod in its life, and nobody asked for. */
export const BY_ITSELF = {
  subEventType: 'pod-lifecycle.status',
  actor: SYSTEM_ACTOR,
} as const satisfies PodEvent;

/** In the transaction of what happened; `pod` as it was before. */
export async function recordPodEvent(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
  { facts = {}, ...event }: PodEvent,
): Promise<void> {
  const status = statusOf(pod);
  await recordEvent(tx, deps, {
    ...{ accountId: pod.account_id, podId: pod.id, fromStatus: status, toStatus: status },
    ...event,
    payload: { pod_name: pod.pod_name, node: pod.executor_id, ...facts },
  });
}
