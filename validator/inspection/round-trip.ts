/** Measures round trips to agents, which bound their distance from a validator whose coordinates are configured. */
import { connect } from 'node:net';
import type { ExecutorToCheck, RoundTrip } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';

const SAMPLES = 3;
const TIMEOUT_MS = 2_000;

export type Coordinates = Pick<RoundTrip, 'lat' | 'lon'>;
export type MeasureRoundTrip = (executor: ExecutorToCheck) => Promise<RoundTrip | null>;

type RoundTripDeps = {
  clock: Clock;
  /** Coordinates of this validator; null disables the measurement. */
  coordinates: Coordinates | null;
};

/**
 * Returns the shortest of three TCP handshakes. Delays of hosts and networks only lengthen a handshake, so the result
 * is an upper bound. Resolves with null if the agent cannot be reached.
 */
export function createRoundTrips({ clock, coordinates }: RoundTripDeps): MeasureRoundTrip {
  return async ({ executor_ip_address: host, executor_ip_port: port }) => {
    if (coordinates === null) return null;
    let shortestMs = Number.POSITIVE_INFINITY;
    for (let sample = 0; sample < SAMPLES; sample += 1) {
      const beganMs = clock.monotonicMs();
      if (!(await isConnected(host, Number(port), clock.deadline(TIMEOUT_MS)))) return null;
      shortestMs = Math.min(shortestMs, clock.monotonicMs() - beganMs);
    }
    // A coarse clock may measure 0 for a host nearby.
    return { ms: Math.max(0.01, shortestMs), ...coordinates };
  };
}

function isConnected(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal });
    socket.once('connect', () => {
      resolve(true);
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
  });
}
