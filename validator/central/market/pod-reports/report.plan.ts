/** Decides whether an account may report a pod. Pure. */
import { ApiError } from '#shared/runtime/errors.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Time after the end of a pod in which it can be reported. */
export const REPORTABLE_MS = 3 * DAY_MS;
/** Time after which a report that no validator could examine expires. */
export const EXPIRY_MS = 14 * DAY_MS;

const MAX_OPEN = 5;
const MAX_PER_DAY = 10;
/** Reports of one account on one node within a week: each may occupy the node for a test rental. */
const MAX_PER_NODE = 3;
const NODE_MS = 7 * DAY_MS;
/** Reports of one account that were not confirmed, after which the account must wait. */
const MAX_NOT_CONFIRMED = 3;
const NOT_CONFIRMED_MS = 30 * DAY_MS;

/** Time from which reports count for a limit. */
export const COUNTED_MS = NOT_CONFIRMED_MS;

/** A report of the account within COUNTED_MS. */
export type EarlierReport = {
  pod_id: string;
  executor_id: string;
  state: string;
  created_at: number;
  ended_at: number | null;
};

type Reported = { id: string; executor_id: string; ended_at: number | null };

/**
 * Throws `pod_state_conflict` for a pod that never ran or ended long ago, `conflict` if the pod has an open or confirmed
 * report, and `rate_limited` if the account has too many reports.
 */
export function requireReportable(
  pod: Reported & { first_running_at: number | null },
  earlier: readonly EarlierReport[],
  nowMs: number,
): void {
  if (pod.first_running_at === null) {
    throw new ApiError('pod_state_conflict', 'The pod has not run, so nothing was charged');
  }
  if (pod.ended_at !== null && nowMs - pod.ended_at > REPORTABLE_MS) {
    throw new ApiError('pod_state_conflict', 'The pod ended more than 3 days ago', {
      hint: 'Report a pod while it runs, or within 3 days after its end.',
    });
  }
  const ofPod = earlier.filter(({ pod_id: podId }) => podId === pod.id);
  if (ofPod.some(({ ended_at: endedMs }) => endedMs === null)) {
    throw new ApiError('conflict', 'The pod already has an open report', {
      hint: 'Read the report with GET /pod-reports.',
    });
  }
  if (ofPod.some(({ state }) => state === 'confirmed')) {
    throw new ApiError('conflict', 'A report on this pod was confirmed already');
  }
  requireWithinLimits(pod, earlier, nowMs);
}

function requireWithinLimits(
  pod: Reported,
  earlier: readonly EarlierReport[],
  nowMs: number,
): void {
  const open = earlier.filter(({ ended_at: endedMs }) => endedMs === null);
  if (open.length >= MAX_OPEN) {
    throw limited(`You have ${open.length} open reports (at most ${MAX_OPEN})`, HOUR_MS);
  }
  const within = (all: readonly EarlierReport[], ms: number) =>
    all.filter(({ created_at: atMs }) => nowMs - atMs < ms);
  const requireFewer = (all: readonly EarlierReport[], ms: number, most: number, what: string) => {
    const counted = within(all, ms).toSorted((a, b) => a.created_at - b.created_at);
    const oldest = counted.at(-most);
    if (oldest !== undefined) throw limited(what, oldest.created_at + ms - nowMs);
  };
  const wrong = earlier.filter(({ state }) => state === 'not_confirmed');
  const what = `${MAX_NOT_CONFIRMED} of your reports were not confirmed within 30 days`;
  requireFewer(wrong, NOT_CONFIRMED_MS, MAX_NOT_CONFIRMED, what);
  requireFewer(earlier, DAY_MS, MAX_PER_DAY, `At most ${MAX_PER_DAY} reports per day`);
  const ofNode = earlier.filter(({ executor_id: id }) => id === pod.executor_id);
  requireFewer(ofNode, NODE_MS, MAX_PER_NODE, `At most ${MAX_PER_NODE} reports per node and week`);
}

function limited(message: string, waitMs: number): ApiError {
  const seconds = String(Math.max(1, Math.ceil(waitMs / 1_000)));
  return new ApiError('rate_limited', message, {
    headers: { 'Retry-After': seconds },
    hint: `Wait ${seconds} seconds, then retry.`,
  });
}
