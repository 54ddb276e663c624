/** States of a notice period and the permitted transitions. Pure. */

export const NOTICE_STATES = ['open', 'started', 'done', 'cancelled'] as const;
export type NoticeState = (typeof NOTICE_STATES)[number];

/** States that prevent another notice for the same node. */
export const ACTIVE_STATES: readonly NoticeState[] = ['open', 'started'];

/** From `open` to `done`: the node was removed before the notice started. */
const TRANSITIONS: Record<NoticeState, readonly NoticeState[]> = {
  open: ['started', 'done', 'cancelled'],
  started: ['done'],
  done: [],
  cancelled: [],
};

/** Returns every state from which a notice may enter `to`, for the condition of the update. */
export function sourcesOf(to: NoticeState): NoticeState[] {
  return NOTICE_STATES.filter((from) => TRANSITIONS[from].includes(to));
}
