/** A store of operations that dies at a chosen write, as if the agent were killed. */
import type { OperationRow, OperationStore } from '../../../agent/backups/operation.store.ts';

/** Returns true if a write changes the stage or the step, not only the heartbeat. */
export function isStep(before: OperationRow | null, after: OperationRow): boolean {
  return before?.stage !== after.stage || stepOf(before) !== stepOf(after);
}

/** Returns the step of a restore's journal; null before the first one. */
export function stepOf(row: OperationRow): string | null {
  return row.kind === 'restore' ? (row.journal?.step ?? null) : null;
}

/**
 * Creates a store that fails from the step with this number on: reads and writes throw, as after a kill of the agent.
 */
export function mortalStore(store: OperationStore, dieAt: number, when: 'before' | 'after') {
  const state = { steps: 0, isDead: false, diedAt: '' };
  const alive = () => {
    if (state.isDead) throw new Error('killed');
  };
  const mortal: OperationStore = {
    ...store,
    get: (id) => {
      alive();
      return store.get(id);
    },
    put(row) {
      alive();
      const counts = isStep(store.get(row.id), row);
      if (counts) state.steps += 1;
      const isLast = counts && state.steps === dieAt;
      if (isLast) state.diedAt = `${row.stage} ${stepOf(row)}`;
      if (isLast && when === 'before') state.isDead = true;
      alive();
      store.put(row);
      if (isLast) state.isDead = true;
      alive();
    },
  };
  return { mortal, state };
}
