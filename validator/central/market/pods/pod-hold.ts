/** The money held for a pod from its rental on, until its meter settles it or it goes without having been metered. */

import { placeHold, voidHold } from '../../money/ledger/hold.service.ts';
import { causedBy } from '../../money/ledger/ledger-account.ts';
import type { Settled } from '../../money/metering/settled-first.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';

type By = { actor: Actor; nowMs: number };

/** Holds what a rental asks for; null where it asks for nothing. Rejects with `insufficient_balance`. */
export async function holdFor(
  tx: Db,
  podId: string,
  { accountId }: Settled,
  amountUusd: number,
  { actor, nowMs }: By,
): Promise<string | null> {
  if (amountUusd === 0) return null;
  const cause = causedBy(actor, { type: 'pod-hold', id: podId, atMs: nowMs, once: true });
  return placeHold(tx, accountId, amountUusd, cause);
}

/** What is still held for the pod is free again: nothing is charged for one whose deletion was accepted, or that never ran. */
export async function releaseHold(tx: Db, pod: Pod, { actor, nowMs }: By): Promise<void> {
  if (pod.hold_id === null) return;
  const cause = causedBy(actor, { type: 'pod-hold-void', id: pod.id, atMs: nowMs, once: true });
  await voidHold(tx, pod.hold_id, cause);
}
