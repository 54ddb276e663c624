/** X-Request-Id: a client's own id is kept when well formed, otherwise one is made (specification, Errors). */
import type { IncomingHttpHeaders } from 'node:http';
import type { Random } from '../runtime/random.ts';

const WELL_FORMED = /^[A-Za-z0-9_.:-]{8,64}$/;

/** Never fails: a malformed, repeated or missing header gives a fresh id. */
export function requestIdFrom(headers: IncomingHttpHeaders, random: Random): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED.test(given) ? given : random.uuid();
}
