/**
 * How fast the line to a host is: GET /v1/speed-test is a WebSocket that streams bytes both ways (validator
 * reference 5). What is timed is timed by the validator; the agent only takes and gives.
 */
import { z } from 'zod';
import { Amount, Name } from './bounds.ts';

/** A larger message ends the socket. */
export const SPEED_MESSAGE_BYTES = 64 * 1024;
/** Of one stream, and of all of one test: what a busy validator or a stolen key can cost a host. */
export const MAX_SPEED_STREAM_BYTES = 256 * 1024 * 1024;
export const MAX_SPEED_TEST_BYTES = 1024 * 1024 * 1024;
export const MAX_SPEED_TEST_MS = 120_000;

export const SPEED_TEST_PATH = '/v1/speed-test';

/** The agent's own id: a test of another host is refused. */
export const SpeedTestQuery = z.strictObject({ executor_id: Name });

const Seed = z.string().regex(/^[0-9a-f]{64}$/, '32 bytes in hex');

/** What the validator says, as text; its stream is binary messages between `down` and `end`. */
export const SpeedRequest = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('down') }),
  z.strictObject({ type: z.literal('end') }),
  /** Asks for the keystream of the seed, until `bytes` are sent or `stop` comes. */
  z.strictObject({
    type: z.literal('up'),
    seed: Seed,
    bytes: z.int().min(1).max(MAX_SPEED_STREAM_BYTES),
  }),
  z.strictObject({ type: z.literal('stop') }),
]);
export type SpeedRequest = z.output<typeof SpeedRequest>;

/** What the agent says: what came down, and that its stream has ended. */
export const SpeedAnswer = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('received'), sha256: Seed }),
  z.strictObject({ type: z.literal('sent'), bytes: Amount }),
]);
export type SpeedAnswer = z.output<typeof SpeedAnswer>;
