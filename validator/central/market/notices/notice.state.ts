/** The states of a notice period and the moves between them (marketplace reference 6). Pure. */

export const NOTICE_STATES = ['open', 'started', 'done', 'cancelled'] as const;
export type NoticeState = (typeof NOTICE_STATES)[number];

/** Those in which nobody can announce another one of the same node. */
export const STANDING_STATES: readonly NoticeState[] = ['open', 'started'];

/** Every allowed move. From `open` to `done`: its node has left before. */
const MOVES: Record<NoticeState, readonly NoticeState[]> = {
  open: ['started', 'done', 'cancelled'],
  started: ['done'],
  done: [],
  cancelled: [],
};

/** Every state from which `to` can be entered: the condition of an update that makes the move. */
export function sourcesOf(to: NoticeState): NoticeState[] {
  return NOTICE_STATES.filter((from) => MOVES[from].includes(to));
}
