/** Times at which nodes and their pods answered, collected so that one transaction stores those of many nodes. */
import type { Db } from '../../platform/database/tables.ts';
import { type SeenExecutor, storeSeenExecutors } from '../executors/executor.service.ts';
import { type SeenPod, storeSeenPods } from './pod.store.ts';

export type SeenTimes = ReturnType<typeof createSeenTimes>;

export function createSeenTimes() {
  let executors: SeenExecutor[] = [];
  let pods: SeenPod[] = [];
  return {
    addExecutor(executor: SeenExecutor): void {
      executors.push(executor);
    },

    /** Adds a pod of which nothing else has changed. */
    addPod(pod: SeenPod): void {
      pods.push(pod);
    },

    /**
     * Stores and removes the times that were added so far. Times that could not be stored, also those of rows that another
     * transaction has locked, are superseded by the next pass.
     */
    async store(tx: Db): Promise<void> {
      const taken = { executors, pods };
      executors = [];
      pods = [];
      await storeSeenExecutors(tx, taken.executors);
      await storeSeenPods(tx, taken.pods);
    },
  };
}
