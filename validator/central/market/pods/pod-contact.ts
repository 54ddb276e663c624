/** What is known of a pod's life while its node is silent: nobody pays for what nobody has seen (marketplace reference 2.3.3). Pure. */
import { CheckResult, isBlocking } from '#shared/api/central/validator-routes.ts';
import type { ApiError } from '#shared/runtime/errors.ts';
import type { Pod } from '../../platform/database/tables.ts';
import type { ExecutorEntry } from '../executors/executor.service.ts';
import { BILLABLE_STATES, wirePhase } from './pod.state.ts';

/** After this long without contact a running pod counts as unknown (marketplace reference 1.15). */
export const CONTACT_LOST_MS = 60_000;
/** And after this long as broken (marketplace reference 6). */
export const BROKEN_AFTER_MS = 2 * 3_600_000;
/** What has come due waits once for so long until a node was asked that nobody has asked for long. */
export const CONTACT_WAIT_MS = 30_000;

const UNREACHED = 'The node could not be reached for two hours';
const CONFIRMED = 'The node cannot be reached, and a validator has confirmed it';
/** Of the validator's check that the agent answers (validator/checks/check-table.ts). */
const UNREACHABLE = 'AGENT_UNREACHABLE';

/** No usable answer of an agent: whether the call had effect is unknown. */
export function isUnanswered({ status }: ApiError): boolean {
  return status >= 500 || status === 401 || status === 429;
}

type Heard = Pick<Pod, 'state' | 'phase' | 'seen_at'>;

/** Whether the pod counts as running although nobody had heard of it for long at `atMs`: neither its use nor its end is known. */
export function isUnheard({ state, phase, seen_at: seenAtMs }: Heard, atMs: number): boolean {
  const counts = BILLABLE_STATES.some((known) => known === state);
  if (!counts || phase === wirePhase('unknown') || seenAtMs === null) return false;
  return atMs - seenAtMs >= CONTACT_LOST_MS;
}

/** Up to when the use of a pod that ends at `atMs` is beyond doubt. */
export function usedUntil(pod: Heard, atMs: number): number {
  return isUnheard(pod, atMs) ? (pod.seen_at ?? atMs) : atMs;
}

/** When to do what was due at `plannedMs` for pods of which one is unheard of; null: now. It waits once only. */
export function waitForContact(
  pods: readonly Heard[],
  { plannedMs, dueAtMs, nowMs }: { plannedMs: number; dueAtMs: number; nowMs: number },
): number | null {
  if (dueAtMs !== plannedMs || !pods.some((pod) => isUnheard(pod, plannedMs))) return null;
  return nowMs + CONTACT_WAIT_MS;
}

/** Why a pod whose node is silent since `lostAtMs` is to be given up; null: it is not, yet. */
export function lossOf(
  node: Pick<ExecutorEntry, 'state' | 'verdict_at' | 'checks_json'> | undefined,
  { lostAtMs, nowMs }: { lostAtMs: number; nowMs: number },
): string | null {
  if (nowMs - lostAtMs >= BROKEN_AFTER_MS) return UNREACHED;
  return node !== undefined && isConfirmed(node, lostAtMs) ? CONFIRMED : null;
}

/** A verdict of before the silence, or of its first moments, says nothing of it. */
function isConfirmed(
  { state, verdict_at: verdictAtMs, checks_json: checks }: Parameters<typeof lossOf>[0] & object,
  lostAtMs: number,
): boolean {
  if (state !== 'failed' || (verdictAtMs ?? 0) - lostAtMs < CONTACT_LOST_MS) return false;
  return CheckResult.array()
    .parse(JSON.parse(checks))
    .some((check) => isBlocking(check) && check.reason_code === UNREACHABLE);
}
