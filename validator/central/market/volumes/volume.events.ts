/** The events of volumes: of the pod that has one, or had it last (contract 5.2, event row). */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { SubEventType } from '../../delivery/events/event.schemas.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Db, VolumeCopy } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';
import { findAnyPod } from '../pods/pod-access.ts';

type Told = {
  actor: Actor;
  detail: 'volume_attached' | 'volume_restored' | 'volume_saved' | 'volume_given_up';
  error?: string;
};

const EVENTS = {
  volume_attached: 'pod-lifecycle',
  volume_restored: 'restore',
  volume_saved: 'backup',
  volume_given_up: 'pod-lifecycle',
} as const;

/** Records one, in the transaction of what happened; with `error` that it did not. */
export async function tellVolume(
  tx: Db,
  deps: { clock: Clock; random: Random },
  copy: VolumeCopy,
  { actor, detail, error }: Told,
): Promise<void> {
  const type = EVENTS[detail];
  const isStatus = type === 'pod-lifecycle';
  const outcome = error === undefined ? 'success' : 'failed';
  const subEventType: SubEventType = `${type}.${isStatus ? 'status' : outcome}`;
  const pod = await findAnyPod(tx, copy.pod_id);
  await recordEvent(tx, deps, {
    accountId: copy.account_id,
    podId: copy.pod_id,
    subEventType,
    actor,
    reason: actor.auth === 'system' ? null : 'user_initiated',
    payload: {
      pod_name: pod?.pod_name ?? null,
      node: copy.executor_id,
      detail: error === undefined || isStatus ? detail : 'volume',
      ...(error === undefined ? {} : { error }),
      volume_id: copy.volume_id,
    },
  });
}
