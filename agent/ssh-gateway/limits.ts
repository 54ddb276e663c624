/** How much room there is: connections that have not logged in, sessions per pod and in all. */
import { createPerOwnerLimit, type PerOwnerLimit } from '#shared/runtime/semaphore.ts';
import type { GatewayTraffic } from '../access/ssh/gateway-files.ts';
import type { FailureLimit } from '../identity/auth.ts';

export type Seats = { waiting: PerOwnerLimit; sessions: PerOwnerLimit };

/** Connections of one address, and of all, that have not logged in yet. */
export const MAX_WAITING_PER_ADDRESS = 30;
export const MAX_WAITING = 100;

/** What those who have logged in are held to. */
export type Bounds = {
  /** Logged-in connections per pod and on this host (agent reference 12.1). */
  sessionsPerPod: number;
  sessions: number;
  /** A connection on which nothing was sent either way for this long is ended. */
  idleMs: number;
  /** How often that is looked at. */
  idleCheckMs: number;
};

export const BOUNDS: Bounds = {
  sessionsPerPod: 10,
  sessions: 200,
  idleMs: 24 * 3_600_000,
  idleCheckMs: 60_000,
};

/** All empty. */
export function createSeats({ sessionsPerPod, sessions }: Bounds): Seats {
  return {
    waiting: createPerOwnerLimit(MAX_WAITING_PER_ADDRESS, MAX_WAITING),
    sessions: createPerOwnerLimit(sessionsPerPod, sessions),
  };
}

// MERGED agent/ssh-gateway/limits.ts: Who comes and goes at all doors, counted for the agent's metrics since the gateway's start.
/** The same limit and seats, with what they see counted. */
export function countTraffic(ports: { limit: FailureLimit; seats: Seats }) {
  const { limit, seats } = ports;
  const traffic = { sessions: 0, sessions_total: 0, login_failures_total: 0 };
  const byPod = new Map<string, number>();
  return {
    /** As of now. */
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
    seats: {
      waiting: seats.waiting,
      sessions: {
        tryAcquire(podId: string) {
          const isTaken = seats.sessions.tryAcquire(podId);
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
          seats.sessions.release(podId);
        },
      },
    } satisfies Seats,
  };
}
