/** Concurrency limits of the gateway, and traffic counters for the agent's metrics. */

import type { Random } from '#shared/runtime/random.ts';
import { createPerOwnerLimit, type PerOwnerLimit } from '#shared/runtime/semaphore.ts';
import type { GatewayTraffic } from '../access/ssh/gateway-files.ts';
import type { FailureLimit } from '../identity/auth.ts';
import { createPendingLogins, type PendingLogins } from './pending-logins.ts';

export type ConcurrencyLimits = { pending: PendingLogins; sessions: PerOwnerLimit };

/** Limits for logged-in clients. */
export type Bounds = {
  /** Logged-in connections per pod, and in total except the first of each pod. */
  sessionsPerPod: number;
  sessions: number;
  /** Idle time in milliseconds after which a connection is closed. */
  idleMs: number;
  /** Interval of the idle check. */
  idleCheckMs: number;
};

export const BOUNDS: Bounds = {
  sessionsPerPod: 10,
  sessions: 200,
  idleMs: 24 * 3_600_000,
  idleCheckMs: 60_000,
};

export function createConcurrencyLimits(
  { sessionsPerPod, sessions }: Bounds,
  random: Random,
): ConcurrencyLimits {
  return {
    pending: createPendingLogins(random),
    sessions: createPerOwnerLimit(sessionsPerPod, sessions, 1),
  };
}

/** Wraps the limits so that sessions and failed logins are counted. */
export function countTraffic(ports: { limit: FailureLimit; limits: ConcurrencyLimits }) {
  const { limit, limits } = ports;
  const traffic = { sessions: 0, sessions_total: 0, login_failures_total: 0 };
  const byPod = new Map<string, number>();
  return {
    traffic: (): GatewayTraffic => ({
      ...traffic,
      sessions_by_pod: Object.fromEntries(byPod),
    }),
    limit: {
      allows: limit.allows,
      failed(address: string) {
        traffic.login_failures_total += 1;
        limit.failed(address);
      },
    } satisfies FailureLimit,
    limits: {
      pending: limits.pending,
      sessions: {
        tryAcquire(podId: string) {
          const isTaken = limits.sessions.tryAcquire(podId);
          if (isTaken) {
            traffic.sessions += 1;
            traffic.sessions_total += 1;
            byPod.set(podId, (byPod.get(podId) ?? 0) + 1);
          }
          return isTaken;
        },
        release(podId: string) {
          traffic.sessions -= 1;
          const left = (byPod.get(podId) ?? 1) - 1;
          if (left > 0) byPod.set(podId, left);
          else byPod.delete(podId);
          limits.sessions.release(podId);
        },
      },
    } satisfies ConcurrencyLimits,
  };
}
