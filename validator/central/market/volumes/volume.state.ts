/**
 * Where a volume's data is. Saved, it lies as a snapshot in the volume's own repository; while a pod has it, and until
 * it is saved again, the newest of it is a copy on that pod's node. Every copy has an id of its own, so that what comes
 * late from a node that was away is another copy's, and changes nothing. Pure.
 *
 * | state     | the copy …                          | is left when …                                                |
 * |-----------|-------------------------------------|---------------------------------------------------------------|
 * | restoring | is being made, and filled           | it is whole: `attached`; its pod has ended before: `dropping` |
 * | attached  | is the pod's                        | nothing of the pod is left: `saving`                          |
 * | saving    | is the newest; nobody writes to it  | it is saved: `dropping`; another pod of its node has it: `attached` |
 * | dropping  | counts no more, wherever it lies    | its node has removed it: the row goes                         |
 *
 * From everywhere to `dropping`: the node has lost it, or nobody waits for it any more (GIVE_UP_MS, POST release).
 *
 * Ended in the middle, each goes on from its row: the central API before or after it has told the node (an operation's
 * id is stored first, and sending it again does nothing); the agent by its own journal of operations, and where it has
 * lost that, by being sent the operation again; an executor that was removed keeps its copy until it is given up.
 */

export const COPY_STATES = ['restoring', 'attached', 'saving', 'dropping'] as const;
export type CopyState = (typeof COPY_STATES)[number];

const MOVES: Record<CopyState, readonly CopyState[]> = {
  restoring: ['attached', 'dropping'],
  attached: ['saving', 'dropping'],
  saving: ['attached', 'dropping'],
  dropping: [],
};

/** Every state from which `to` can be entered: the condition of an update that makes the move. */
export function sourcesOf(to: CopyState): CopyState[] {
  return COPY_STATES.filter((from) => MOVES[from].includes(to));
}

export const VOLUME_STATUSES = ['available', 'restoring', 'attached', 'saving'] as const;
export type VolumeStatus = (typeof VOLUME_STATUSES)[number];

/** As its owner sees it. One whose copy was lost stays with its pod until that ends. */
export function volumeStatus(attachedPodId: string | null, copy: CopyState | null): VolumeStatus {
  if (copy === null || copy === 'dropping')
    return attachedPodId === null ? 'available' : 'attached';
  return copy;
}

/** While a pod has it a volume is saved this often, as it is at that moment: what a node that never comes back costs. */
export const SAVE_INTERVAL_MS = 6 * 3_600_000;
/** A copy whose node was not heard of for this long, and whose pod is to end or has ended, is given up. */
export const GIVE_UP_MS = 24 * 3_600_000;
/** A node that answers and does not list a copy for this long has lost it: an engine may be away, or another for a moment. */
export const LOST_AFTER_MS = 600_000;
/** In use, a volume is measured at least this often, or its figures are stale. */
export const STALE_AFTER_MS = 600_000;
