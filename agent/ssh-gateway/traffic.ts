/** Who comes and goes at all doors, counted for the agent's metrics since the gateway's start. */

import type { GatewayTraffic } from '../access/ssh/gateway-files.ts';
import type { FailureLimit } from '../identity/failure-limit.ts';
import type { Seats } from './seats.ts';

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
        take(podId: string) {
          const isTaken = seats.sessions.take(podId);
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
