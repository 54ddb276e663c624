/** How the description shows routes that run once per Idempotency-Key: from `config.once`, by which they do. Pure. */
import { WELL_FORMED } from '../idempotency/fingerprint.ts';
import { WINDOW_MS } from '../idempotency/idempotency.ts';

const KEY_HEADER = 'Idempotency-Key';
const HOURS = WINDOW_MS / 3_600_000;

/** The headers that such a route takes, as JSON schema. */
export const ONCE_HEADERS = {
  type: 'object',
  properties: {
    [KEY_HEADER]: {
      type: 'string',
      pattern: WELL_FORMED.source,
      description: `Runs once per key: for ${HOURS} hours the same request with the same key gets the first answer again, marked by the header Idempotent-Replayed.`,
    },
  },
};

/** Of an answer that may be a stored one. */
export const REPLAY_HEADERS = {
  'Idempotent-Replayed': {
    schema: { type: 'string', const: 'true' },
    description: 'Only on an answer that was stored under the Idempotency-Key before.',
  },
};

export const IN_PROGRESS =
  'The first request with this Idempotency-Key is still running (idempotency_in_progress, Retry-After says when to ask again), or another conflict';
export const KEY_REFUSED = `A field failed validation, the Idempotency-Key is malformed (idempotency_key_invalid), or it was used for another request within ${HOURS} hours (idempotency_key_reused)`;

/** Whether an operation of the generated description has that header. */
export function takesKey(parameters: unknown): boolean {
  return (
    Array.isArray(parameters) &&
    parameters.some((entry: { name?: unknown; in?: unknown } | null) => {
      return entry?.in === 'header' && entry.name === KEY_HEADER;
    })
  );
}
