/** Money held for a pod from its rental until metering settles the hold, or until the pod ends without having run. */

import { causedBy } from '../../money/ledger/double-entry.ts';
import { placeHold, voidHold } from '../../money/ledger/hold.service.ts';
import type { SettledAccount } from '../../money/metering/settlement.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';

type Cause = { actor: Actor; nowMs: number };

/** Returns the id of the hold; null for an amount of 0. Throws `insufficient_balance`. */
export async function placePodHold(
  tx: Db,
  podId: string,
  { accountId }: SettledAccount,
  amountUusd: number,
  { actor, nowMs }: Cause,
): Promise<string | null> {
  if (amountUusd === 0) return null;
  const cause = causedBy(actor, { type: 'pod-hold', id: podId, atMs: nowMs, once: true });
  return placeHold(tx, accountId, amountUusd, cause);
}

/** Voids the remaining amount of the pod's hold. */
export async function releaseHold(tx: Db, pod: Pod, { actor, nowMs }: Cause): Promise<void> {
  if (pod.hold_id === null) return;
  const cause = causedBy(actor, { type: 'pod-hold-void', id: pod.id, atMs: nowMs, once: true });
  await voidHold(tx, pod.hold_id, cause);
}
