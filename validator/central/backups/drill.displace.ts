/** Drills give way to backups and restores of their pod. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Db } from '../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../platform/identity.ts';
import { findOpenDrill, setNextDrill } from './drill.store.ts';
import { cancelOperation } from './operation.cancel.ts';

/** Until a scheduled one that could not be made, or gave way, is tried again. */
export const DRILL_RETRY_MS = 600_000;

/** Ends the drill that is under way on a pod, for something that is wanted now. The caller holds the pod. */
export async function displaceDrill(
  tx: Db,
  deps: { clock: Clock; random: Random },
  podId: string,
): Promise<void> {
  const drill = await findOpenDrill(tx, podId);
  if (drill === undefined) return;
  await cancelOperation(tx, deps, { table: 'backup_drills', ...drill }, SYSTEM_ACTOR);
  if (drill.occasion === 'REQUESTED') return;
  await setNextDrill(tx, podId, deps.clock.now() + DRILL_RETRY_MS);
}
