/** What a renter's new limit on a pod's cost or idleness does: a later or earlier stop, or the start of one that it had stopped. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { requireFloor } from '../../money/balance/balance.service.ts';
import { type Settled, settledFirst } from '../../money/metering/settled-first.ts';
import { limitChanged, mayCostMore } from '../../money/metering/spend-limit.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { clearIdle } from './pod-idle.ts';
import { resumePod, type StopReason } from './pod-stop.ts';

/** `pod` as it was before; its row has the new limit already, and its account was settled before it had. */
export async function capChanged(
  tx: Db,
  deps: { clock: Clock; random: Random },
  settled: Settled,
  pod: Pod,
): Promise<void> {
  await limitChanged(tx, settled, pod.id);
  await resumeFrom(tx, deps, pod, 'max_spend_reached');
}

/** The same of the minutes without use; they count from now on. */
export async function idleMinutesChanged(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
): Promise<void> {
  await clearIdle(tx, pod.id);
  await resumeFrom(tx, deps, pod, 'idle_shutdown');
}

/** Throws `insufficient_balance` where the account has less left than a rental of the pod would ask for. */
async function resumeFrom(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
  reason: StopReason,
): Promise<void> {
  if (pod.state !== 'stopped' || pod.reason_code !== reason) return;
  if (!(await mayCostMore(tx, pod.id))) return;
  const settled = await settledFirst(tx, pod.account_id, deps.clock.now());
  requireFloor(settled, pod.price_uusd_per_gpu_hour, pod.gpu_count, 'starting it again');
  await resumePod(tx, deps, pod);
}
