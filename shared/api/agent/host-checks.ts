/** Whether ports of a host are reached: POST /v1/port-checks has the agent listen on some for a while (validator reference 5). */
import { z } from 'zod';
import { sha256Hex } from '../../signing/signed-request.ts';
import { Amount, Name, Port, Text } from './bounds.ts';

export const MAX_CHECKED_PORTS = 300;
const MAX_OPEN_MS = 40_000;

export const PortCheckRequest = z.strictObject({
  nonce: z.string().regex(/^[A-Za-z0-9_-]{22}$/, '16 bytes in base64url'),
  executor_id: Name,
  ports: z.array(Port).min(1).max(MAX_CHECKED_PORTS),
  open_ms: z.int().min(100).max(MAX_OPEN_MS),
});
export type PortCheckRequest = z.output<typeof PortCheckRequest>;

/** Those that it listens on now: of its range, and free. */
export const PortCheckOpened = z.object({ opened: z.array(Port).max(MAX_CHECKED_PORTS) });
export type PortCheckOpened = z.output<typeof PortCheckOpened>;

/** What a port answers to whoever connects: a way that ends at another port or host answers something else. */
export function portAnswer(
  { nonce, executor_id }: Pick<PortCheckRequest, 'nonce' | 'executor_id'>,
  port: number,
): string {
  return sha256Hex(`podwright-port-v1\n${nonce}\n${executor_id}\n${port}`);
}

export const EgressCheckRequest = z.strictObject({
  executor_id: Name,
  /** Whose digest is asked for; nothing is pulled. */
  image: Name.regex(/^[a-z0-9][a-z0-9._:/@-]*$/, 'No image name'),
});
export type EgressCheckRequest = z.output<typeof EgressCheckRequest>;

/**
 * `answers`: the engine got an answer. `unreachable`: it got none, though the registry takes connections.
 * `blocked`: not even that. `unknown`: the engine could not be asked.
 */
export const EgressCheckResult = z.object({
  registry: z.enum(['answers', 'unreachable', 'blocked', 'unknown']),
  /** In words; empty where it answers. */
  problem: Text,
});
export type EgressCheckResult = z.output<typeof EgressCheckResult>;

export const MAX_IMAGES = 16;
const Image = EgressCheckRequest.shape.image;

export const ImageCheckRequest = z.strictObject({
  executor_id: Name,
  /** Nothing is pulled. */
  images: z.array(Image).min(1).max(MAX_IMAGES),
});
export type ImageCheckRequest = z.output<typeof ImageCheckRequest>;

/**
 * `present`: on the host. `pullable`: its registry gives its digest to the engine. `missing`: neither.
 * `unknown`: engine or registry would not say.
 */
export const ImageAvailability = z.object({
  image: Image,
  state: z.enum(['present', 'pullable', 'missing', 'unknown']),
  /** In words; empty where it can be had. */
  problem: Text,
});
export type ImageAvailability = z.output<typeof ImageAvailability>;

/** In the order in which they were asked for. */
export const ImageCheckResult = z.object({ images: z.array(ImageAvailability).max(MAX_IMAGES) });
export type ImageCheckResult = z.output<typeof ImageCheckResult>;

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
export const SpeedResponse = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('received'), sha256: Seed }),
  z.strictObject({ type: z.literal('sent'), bytes: Amount }),
]);
export type SpeedResponse = z.output<typeof SpeedResponse>;
