/** Liveness of a process: heartbeats of its loops, and whether a restart would help. */
import type { Clock } from './clock.ts';

export type Liveness = {
  /** Time since the last heartbeat; of several loops, the longest. */
  heartbeatAgeMs: number;
  /** Name of the loop with the oldest heartbeat; absent if there is only one loop. */
  loop?: string;
  /** Why the store cannot be read or written; null if it can. */
  storeProblem: string | null;
  /** `away`: the Docker engine does not respond. A restart of this process would not help. */
  engine: 'answers' | 'away' | 'unused';
};

export type LivenessLimits = {
  /** Includes the longest iteration that is expected under load. */
  maxHeartbeatAgeMs: number;
};

/**
 * Limit for the event loop's lag, which delays every request, milliseconds. Above it the process counts as unhealthy.
 */
export const MAX_LAG_MS = 2_000;

/**
 * Returns why a restart would help, or null. `lagMs`: how late this process's own timer fired. A loop that waits for a
 * Docker engine that does not answer is not stuck.
 */
export function livenessProblem(
  { heartbeatAgeMs, loop = 'main', storeProblem, engine }: Liveness,
  lagMs: number,
  { maxHeartbeatAgeMs }: LivenessLimits,
): string | null {
  if (lagMs >= MAX_LAG_MS) return `the event loop lags by ${Math.round(lagMs)} ms`;
  if (storeProblem !== null) return `the store failed: ${storeProblem}`;
  if (heartbeatAgeMs > maxHeartbeatAgeMs && engine !== 'away') {
    return `the ${loop} loop has had no heartbeat for ${Math.round(heartbeatAgeMs / 1000)} s`;
  }
  return null;
}

/** Returns the status text of a healthy process. */
export function livenessStatus({ engine }: Liveness): string {
  return engine === 'away' ? 'serving; the Docker engine does not answer' : 'serving';
}

export type Heartbeat = {
  /** Runs `work` and records a heartbeat when it ends, even if it fails. */
  beatAfter<T>(work: () => Promise<T>): Promise<T>;
  /** Milliseconds since the last heartbeat, or since the creation. */
  ageMs(): number;
};

export function createHeartbeat(clock: Clock): Heartbeat {
  let lastMs = clock.monotonicMs();
  return {
    async beatAfter(work) {
      try {
        return await work();
      } finally {
        lastMs = clock.monotonicMs();
      }
    },
    ageMs: () => clock.monotonicMs() - lastMs,
  };
}

export function oldestHeartbeat(loops: Readonly<Record<string, Heartbeat>>): {
  loop: string;
  heartbeatAgeMs: number;
} {
  const [oldest = { loop: 'main', heartbeatAgeMs: 0 }] = Object.entries(loops)
    .map(([loop, heartbeat]) => ({ loop, heartbeatAgeMs: heartbeat.ageMs() }))
    .toSorted((a, b) => b.heartbeatAgeMs - a.heartbeatAgeMs);
  return oldest;
}
