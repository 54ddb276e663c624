/** Removes everybody's pods: for a marketplace on one machine that is being switched off. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { listUnended } from './pod.store.ts';
import { beginRemoval } from './pod-removal.ts';

/** More pods than one machine runs; were there more, calling again takes the rest. */
const BATCH = 10_000;

export type PodClearance = ReturnType<typeof createPodClearance>;

export function createPodClearance(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  /** Makes the sync look at the executor now. */
  wake(executorId: string): void;
}) {
  const { db, wake } = deps;
  return {
    /** Begins the removal of every pod and returns how many still have something on a node. */
    async removeAll(): Promise<number> {
      const pods = await listUnended(db, BATCH);
      for (const pod of pods) {
        // Nobody who rents it asked for that: its node goes with the marketplace.
        const request = { actor: SYSTEM_ACTOR, reason: 'node_removed' } as const;
        try {
          await moneyTransaction(deps, (tx) => beginRemoval(tx, deps, pod, request));
        } catch (error) {
          // It is going already.
          if (!(error instanceof ApiError)) throw error;
        }
        wake(pod.executor_id);
      }
      return pods.length;
    },
    /** How many pods still have something on a node. */
    count: async () => (await listUnended(db, BATCH)).length,
  };
}
