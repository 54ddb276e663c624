/** States of a copy of a volume on a node. The README of this folder has the diagram. Pure. */

export const COPY_STATES = ['restoring', 'attached', 'saving', 'dropping'] as const;
export type CopyState = (typeof COPY_STATES)[number];

const MOVES: Record<CopyState, readonly CopyState[]> = {
  restoring: ['attached', 'dropping'],
  attached: ['saving', 'dropping'],
  saving: ['attached', 'dropping'],
  dropping: [],
};

/** Returns the states from which a copy can move to `to`. */
export function sourcesOf(to: CopyState): CopyState[] {
  return COPY_STATES.filter((from) => MOVES[from].includes(to));
}

export const VOLUME_STATUSES = ['available', 'restoring', 'attached', 'saving'] as const;
export type VolumeStatus = (typeof VOLUME_STATUSES)[number];

/** Status for the owner. A volume whose copy was lost stays attached until its pod ends. */
export function volumeStatus(attachedPodId: string | null, copy: CopyState | null): VolumeStatus {
  if (copy === null || copy === 'dropping')
    return attachedPodId === null ? 'available' : 'attached';
  return copy;
}

/** Interval between saves of an attached volume, which limits the loss if its node never answers again. */
export const SAVE_INTERVAL_MS = 6 * 3_600_000;
/** Time without a report of the node after which a copy is abandoned if its pod is ending or has ended. */
export const GIVE_UP_MS = 24 * 3_600_000;
/**
 * Time after which a node that answers but does not list a copy has lost it. The node's engine may be unavailable for a
 * short time.
 */
export const LOST_AFTER_MS = 600_000;
/** Age above which figures of an attached volume are stale. */
export const STALE_AFTER_MS = 600_000;
