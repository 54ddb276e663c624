/**
 * Decides from the agent's measurements when an unused pod stops (`idle_shutdown_minutes`). Time without measurements
 * counts as use.
 */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { type PodMetrics, SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { clearDue, ensureDue, setDue } from '../../platform/schedule/due.ts';
import { changePod, findPod } from './pod.store.ts';
import { CONTACT_LOST_MS, isUnanswered } from './pod-contact.ts';

const MINUTE_MS = 60_000;
/** Lead time of the warning before the stop; half of the idle minutes if that is less. */
const WARN_BEFORE_MS = 5 * MINUTE_MS;
/** Tolerated jitter of measured ages, which vary with the duration of a response. */
const JITTER_MS = 15_000;
/** Minimum number of samples. An agent with fewer samples has just started and may have missed an earlier use. */
const SURE_POINTS = MINUTE_MS / SAMPLE_INTERVAL_MS;

type Measured = Pick<PodMetrics, 'age_ms' | 'idle_ms' | 'history'>;

/** Columns that discard earlier measurements: idle time counts from `fromMs` on. */
export function resetIdle(fromMs: number) {
  return { idle_from: fromMs, idle_stop_at: null, idle_until: null };
}

/** Milliseconds from the warning to the stop. */
export function warningLeadMs(minutes: number): number {
  return Math.min(WARN_BEFORE_MS, (minutes * MINUTE_MS) / 2);
}

/** The planned stop, and the time until which the pod was observed unused; null if the pod is in use. */
export function plannedIdleStop(
  pod: Pick<Pod, 'idle_from' | 'idle_stop_at' | 'first_running_at'>,
  { age_ms: ageMs, idle_ms: idleMs }: Pick<Measured, 'age_ms' | 'idle_ms'>,
  { minutes, nowMs }: { minutes: number; nowMs: number },
): { stopAtMs: number; untilMs: number } | null {
  if (ageMs === null || idleMs === null || ageMs >= CONTACT_LOST_MS) return null;
  const untilMs = nowMs - ageMs;
  const fromMs = pod.idle_from ?? pod.first_running_at ?? nowMs;
  const stopAtMs = Math.max(untilMs - idleMs, fromMs) + minutes * MINUTE_MS;
  const before = pod.idle_stop_at;
  const isSame = before !== null && Math.abs(before - stopAtMs) <= JITTER_MS;
  return { stopAtMs: isSame ? before : stopAtMs, untilMs };
}

/**
 * Returns the time of the last use if it is later than the last report of an unused pod; otherwise null. Missing
 * measurements do not count as a use in this function, so that the renter is not warned twice of the same idle time.
 */
function lastUseMs(
  { idle_until: seenMs }: Pick<Pod, 'idle_until'>,
  { age_ms: ageMs, idle_ms: idleMs, history }: Measured,
  nowMs: number,
): number | null {
  if (seenMs === null || ageMs === null || ageMs >= CONTACT_LOST_MS) return null;
  if (history.length < SURE_POINTS) return null;
  const fromMs = nowMs - ageMs - (idleMs ?? 0);
  return idleMs === null || fromMs > seenMs + JITTER_MS ? fromMs : null;
}

function hasIdleLimit(pod: Pod): boolean {
  return pod.state === 'running' && pod.idle_shutdown_minutes !== null;
}

export type IdleCheckDeps = { db: Database; clock: Clock; random: Random; log: Log };

export function createIdleCheck({ db, clock, random, log }: IdleCheckDeps) {
  async function recordIdle(pod: Pod, metrics: Measured): Promise<void> {
    await moneyTransaction({ db, clock, random }, async (tx) => {
      const now = await findPod(tx, pod.id);
      const minutes = now?.idle_shutdown_minutes ?? null;
      if (now === undefined || minutes === null) return;
      const nowMs = clock.now();
      const stop = plannedIdleStop(now, metrics, { minutes, nowMs });
      const usedMs = lastUseMs(now, metrics, nowMs);
      if (stop === null && usedMs === null && now.idle_stop_at === null) return;
      const columns = {
        ...(usedMs === null ? { idle_stop_at: null } : resetIdle(usedMs)),
        ...(stop === null ? {} : { idle_stop_at: stop.stopAtMs, idle_until: stop.untilMs }),
      };
      if (!(await changePod(tx, pod.id, ['running'], columns))) return;
      if (stop === null) return cancelIdleStop(tx, pod.id);
      await ensureDue(tx, 'idle-shutdown', pod.id, stop.stopAtMs);
      if (stop.stopAtMs === now.idle_stop_at) return;
      await setDue(tx, 'idle-shutdown', pod.id, stop.stopAtMs);
      await setDue(tx, 'idle-warning', pod.id, stop.stopAtMs - warningLeadMs(minutes));
    });
  }

  /**
   * Checks pods for idle time. Call it after the agent has answered. Rejects with ApiError if the agent stops
   * answering.
   */
  return async function checkIdle(client: AgentClient, pods: readonly Pod[]): Promise<void> {
    for (const pod of pods.filter(hasIdleLimit)) {
      try {
        await recordIdle(pod, await client.podMetrics(pod.id));
      } catch (error) {
        if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
        log.debug({ pod_id: pod.id, code: error.code }, 'pod metrics refused by the agent');
        await recordIdle(pod, { age_ms: null, idle_ms: null, history: [] });
      }
    }
  };
}

export async function cancelIdleStop(tx: Db, podId: string): Promise<void> {
  await clearDue(tx, 'idle-shutdown', podId);
  await clearDue(tx, 'idle-warning', podId);
}
