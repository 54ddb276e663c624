/** What a renter's new limit on a pod's cost does: a later or earlier stop, or the start of one that it had stopped. */
import type { Clock } from '#shared/clock.ts';
import type { Random } from '#shared/random.ts';
import type { Db, Pod } from '../db/tables.ts';
import { hasRoomFor, limitChanged } from '../metering/spend-limit.ts';
import { resumePod } from './pod-stop.ts';

/** `pod` as it was before; its row has the new limit already. */
export async function capChanged(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
): Promise<void> {
  await limitChanged(tx, pod.id);
  if (pod.state !== 'stopped' || pod.reason_code !== 'max_spend_reached') return;
  if (await hasRoomFor(tx, pod)) await resumePod(tx, deps, pod);
}
