/**
 * Checks that a validator runs with an agent's help: port reachability (POST /v1/port-checks), internet access
 * (POST /v1/egress-checks), availability of images (POST /v1/image-checks) and network speed (GET
 * /v1/speed-test).
 */
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

/** The requested ports on which the agent now listens: those that are free and in the agent's range. */
export const PortCheckOpened = z.object({ opened: z.array(Port).max(MAX_CHECKED_PORTS) });
export type PortCheckOpened = z.output<typeof PortCheckOpened>;

/** Returns what the agent sends on connect. A connection that ends at another port or host receives something else. */
export function portAnswer(
  { nonce, executor_id }: Pick<PortCheckRequest, 'nonce' | 'executor_id'>,
  port: number,
): string {
  return sha256Hex(`podwright-port-v1\n${nonce}\n${executor_id}\n${port}`);
}

export const EgressCheckRequest = z.strictObject({
  executor_id: Name,
  /** The engine queries the image's digest from the registry; nothing is pulled. */
  image: Name.regex(/^[a-z0-9][a-z0-9._:/@-]*$/, 'Not an image name'),
});
export type EgressCheckRequest = z.output<typeof EgressCheckRequest>;

/**
 * `answers`: the registry responded to the engine. `unreachable`: it accepts connections but did not respond.
 * `blocked`: it does not accept connections. `unknown`: the engine did not respond.
 */
export const EgressCheckResult = z.object({
  registry: z.enum(['answers', 'unreachable', 'blocked', 'unknown']),
  /** The problem as a sentence; empty if the registry answers. */
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
 * `present`: on the host. `pullable`: the registry returned its digest. `missing`: neither. `unknown`: engine or
 * registry did not respond.
 */
export const ImageAvailability = z.object({
  image: Image,
  state: z.enum(['present', 'pullable', 'missing', 'unknown']),
  /** The problem as a sentence; empty if the image is available. */
  problem: Text,
});
export type ImageAvailability = z.output<typeof ImageAvailability>;

/** Results in the order of the request. */
export const ImageCheckResult = z.object({ images: z.array(ImageAvailability).max(MAX_IMAGES) });
export type ImageCheckResult = z.output<typeof ImageCheckResult>;

/** Maximum size of a message; a larger message closes the socket. */
export const SPEED_MESSAGE_BYTES = 64 * 1024;
/** Most bytes of a stream and of a test, which limit the traffic that a faulty validator or a stolen key can cause. */
export const MAX_SPEED_STREAM_BYTES = 256 * 1024 * 1024;
export const MAX_SPEED_TEST_BYTES = 1024 * 1024 * 1024;
export const MAX_SPEED_TEST_MS = 120_000;

export const SPEED_TEST_PATH = '/v1/speed-test';

/** `executor_id`: the agent's id; the agent rejects tests for another id. */
export const SpeedTestQuery = z.strictObject({ executor_id: Name });

const Seed = z.string().regex(/^[0-9a-f]{64}$/, '32 bytes in hex');

/** Text messages from the validator. The validator sends data as binary messages between `down` and `end`. */
export const SpeedRequest = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('down') }),
  z.strictObject({ type: z.literal('end') }),
  /** Requests that the agent sends the keystream of the seed until `bytes` are sent or `stop` arrives. */
  z.strictObject({
    type: z.literal('up'),
    seed: Seed,
    bytes: z.int().min(1).max(MAX_SPEED_STREAM_BYTES),
  }),
  z.strictObject({ type: z.literal('stop') }),
]);
export type SpeedRequest = z.output<typeof SpeedRequest>;

/** Text messages from the agent: the hash of the received data, and the end of the sent data. */
export const SpeedResponse = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('received'), sha256: Seed }),
  z.strictObject({ type: z.literal('sent'), bytes: Amount }),
]);
export type SpeedResponse = z.output<typeof SpeedResponse>;
