/** What time a proof may take, and what of it counts. */
import type { Expected } from '../../checks/proof-pace.ts';

const FIRST_DEADLINE_MS = 300_000;
const SHORTEST_DEADLINE_MS = 10_000;
/** Above the slowest that is taken: what is late is to be seen as late, not as lost. */
const DEADLINE_FACTOR = 4;
/** A slow way takes no more of the time that is not counted. */
const MAX_LINK_MS = 2_000;

/** The deadline that is announced, whole milliseconds. */
export function deadlineFor({ modelMs, ownMs }: Omit<Expected, 'others'>): number {
  if (modelMs === null && ownMs === null) return FIRST_DEADLINE_MS;
  const usual = Math.max(modelMs ?? 0, ownMs ?? 0);
  const deadline = Math.max(SHORTEST_DEADLINE_MS, Math.ceil(usual * DEADLINE_FACTOR));
  return Math.min(FIRST_DEADLINE_MS, deadline);
}

/** What a proof took, less what the way there and back takes. */
export function msWithoutLink(wallMs: number, linkMs: number): number {
  return Math.max(0, wallMs - Math.min(linkMs, MAX_LINK_MS));
}
