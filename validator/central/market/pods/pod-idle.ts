/**
 * When a pod that nobody uses is to stop (`idle_shutdown_minutes`), from what its agent measures. Only what was measured
 * counts: a pod whose use is not known is in use.
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
/** The renter is warned so long before, or halfway where that is sooner. */
const WARN_BEFORE_MS = 5 * MINUTE_MS;
/** Ages that agents tell vary by as much as answers take. */
const JITTER_MS = 15_000;
/** An agent that has measured for less knows nothing of some use yet: it has just started. */
const SURE_POINTS = MINUTE_MS / SAMPLE_INTERVAL_MS;

type Measured = Pick<PodMetrics, 'age_ms' | 'idle_ms' | 'history'>;

/** Nothing is known of its use, and what was before `fromMs` does not count. */
export function idleFrom(fromMs: number) {
  return { idle_from: fromMs, idle_stop_at: null, idle_until: null };
}

/** How long before the stop the renter hears of it. */
export function warnedBeforeMs(minutes: number): number {
  return Math.min(WARN_BEFORE_MS, (minutes * MINUTE_MS) / 2);
}

/** When the pod is to stop as things stand, and up to when it was seen unused; null: it is in use. */
export function idleStop(
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
 * From when on it may be unused again, where it was used after it was seen unused; else null. What only was not measured
 * is no such use: its renter is not told again of the same time without use.
 */
function usedUntil(
  { idle_until: seenMs }: Pick<Pod, 'idle_until'>,
  { age_ms: ageMs, idle_ms: idleMs, history }: Measured,
  nowMs: number,
): number | null {
  if (seenMs === null || ageMs === null || ageMs >= CONTACT_LOST_MS) return null;
  if (history.length < SURE_POINTS) return null;
  const fromMs = nowMs - ageMs - (idleMs ?? 0);
  return idleMs === null || fromMs > seenMs + JITTER_MS ? fromMs : null;
}

/** Whether its use is to be asked for. */
function isWatched(pod: Pod): boolean {
  return pod.state === 'running' && pod.idle_shutdown_minutes !== null;
}

export type IdleWatchDeps = { db: Database; clock: Clock; random: Random; log: Log };

export function createIdleWatch({ db, clock, random, log }: IdleWatchDeps) {
  async function note(pod: Pod, metrics: Measured): Promise<void> {
    await moneyTransaction({ db, clock, random }, async (tx) => {
      const now = await findPod(tx, pod.id);
      const minutes = now?.idle_shutdown_minutes ?? null;
      if (now === undefined || minutes === null) return;
      const nowMs = clock.now();
      const stop = idleStop(now, metrics, { minutes, nowMs });
      const usedMs = usedUntil(now, metrics, nowMs);
      if (stop === null && usedMs === null && now.idle_stop_at === null) return;
      const columns = {
        ...(usedMs === null ? { idle_stop_at: null } : idleFrom(usedMs)),
        ...(stop === null ? {} : { idle_stop_at: stop.stopAtMs, idle_until: stop.untilMs }),
      };
      if (!(await changePod(tx, pod.id, ['running'], columns))) return;
      if (stop === null) return clearIdle(tx, pod.id);
      await ensureDue(tx, 'idle-shutdown', pod.id, stop.stopAtMs);
      if (stop.stopAtMs === now.idle_stop_at) return;
      await setDue(tx, 'idle-shutdown', pod.id, stop.stopAtMs);
      await setDue(tx, 'idle-warning', pod.id, stop.stopAtMs - warnedBeforeMs(minutes));
    });
  }

  /** Of one agent that has just answered. Rejects with ApiError when it answers no more. */
  return async function watchIdle(client: AgentClient, pods: readonly Pod[]): Promise<void> {
    for (const pod of pods.filter(isWatched)) {
      try {
        await note(pod, await client.podMetrics(pod.id));
      } catch (error) {
        if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
        log.debug({ pod_id: pod.id, code: error.code }, 'the use of a pod is not told');
        await note(pod, { age_ms: null, idle_ms: null, history: [] });
      }
    }
  };
}

/** It is not to be stopped for want of use. */
export async function clearIdle(tx: Db, podId: string): Promise<void> {
  await clearDue(tx, 'idle-shutdown', podId);
  await clearDue(tx, 'idle-warning', podId);
}
