/** The routes of a simulated marketplace over a control without a simulation, for tests of the console's page. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { installClock } from '../../../validator/simulate/live/clock.routes.ts';
import { MARKUP } from '../scenes/full-console-market.ts';

const EXECUTOR = '00000000-0000-4000-8000-0000000000e1';
const HOUR_MS = 3_600_000;

/** Adds the routes. The clock is paused, a host and a region have faults, and changes have no effect. */
export function installFakeClock(server: HttpServer, clock: Clock): void {
  const startedMs = clock.now();
  installClock(server, {
    clock,
    control: () => ({
      state: () => ({
        status: 'paused',
        speed: null,
        targetMs: null,
        nowMs: clock.now(),
        startedMs,
        events: 1_234,
        violation: `ledger: ${MARKUP}`,
        jumpMs: -600_000,
      }),
      change: () => undefined,
      faults: () => [
        {
          number: 1,
          kind: 'dies',
          executor: EXECUTOR,
          region: null,
          sinceMs: startedMs,
          untilMs: startedMs + HOUR_MS,
        },
        {
          number: 2,
          kind: 'region',
          executor: null,
          region: 'eu',
          sinceMs: startedMs,
          untilMs: startedMs + HOUR_MS,
        },
      ],
      regions: () => ['eu', 'us'],
      begin: () => undefined,
      end: () => undefined,
      events: () => [
        {
          number: 7,
          atMs: startedMs,
          event: { kind: 'rented', pod: MARKUP, executor: EXECUTOR, gpus: 2 },
        },
      ],
    }),
  });
}
