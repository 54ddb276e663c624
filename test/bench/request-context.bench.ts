/** Cost of the request context in log lines and awaited work, compared with the same work outside a request. */

import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { withRequestId } from '#shared/runtime/request-context.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';

const REQUESTS = 20_000;
const ROUNDS = 7;
/** Awaits of a small request: its hooks, the database, the response. */
const WAITS = 20;
const MAX_RATIO = 1.5;
const MICROSECONDS_PER_MS = 1_000;
const REQUEST_ID = 'req-0123456789abcdef';

export async function requestContextCost(): Promise<Row> {
  const log = createLog({ name: 'bench', level: 'info' }, { write: () => undefined });
  const request = async (): Promise<void> => {
    for (let wait = 0; wait < WAITS; wait += 1) await null;
    log.info({ status: 200 }, 'request completed');
  };
  const ours: number[] = [];
  const reference: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    reference.push(await microseconds(request));
    ours.push(await microseconds(() => withRequestId(REQUEST_ID, request)));
  }
  const measured = { ours: median(ours), reference: median(reference) };
  const name = `${WAITS} waits and a log line of a request`;
  return ratioAtMost(name, 'µs', 'the same work outside a request', measured, MAX_RATIO);
}

async function microseconds(request: () => Promise<void>): Promise<number> {
  const beganMs = systemClock.monotonicMs();
  for (let count = 0; count < REQUESTS; count += 1) await request();
  return ((systemClock.monotonicMs() - beganMs) * MICROSECONDS_PER_MS) / REQUESTS;
}
