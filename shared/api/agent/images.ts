/** Images on the wire: registry logins, the registry of an image, progress of pulls. Pure. */
import { z } from 'zod';
import { Amount, Bytes, HostTime, MAX_WAIT_MS, MAX_WAIT_SECONDS, Name } from './bounds.ts';

/** The canonical name of Docker Hub. */
export const DOCKER_HUB = 'docker.io';
/** Prefix of images that each agent builds itself; they are never pulled. */
export const BUILTIN_HOST = 'podwright.local/';
const HUB_NAMES = new Set([
  DOCKER_HUB,
  'index.docker.io',
  'registry-1.docker.io',
  'hub.docker.com',
]);
const NO_CONTROL = /^[^\p{Cc}]*$/u;

export const RegistryAuth = z.strictObject({
  /** `host[:port]` as in the image's name; `docker.io` for names without a host. */
  host: z
    .string()
    .max(255)
    .regex(/^[a-z0-9][a-z0-9.-]*(?::\d{1,5})?$/, 'Not a registry host'),
  username: z.string().min(1).max(255).regex(NO_CONTROL, 'Contains control characters'),
  password: z.string().min(1).max(8_192).regex(NO_CONTROL, 'Contains control characters'),
});
export type RegistryAuth = z.output<typeof RegistryAuth>;

/**
 * Returns `host[:port]` of an image's registry in lower case. A login is sent only to its registry. Engines treat a first
 * part with capital letters as a host, because repository paths are lower case.
 */
export function registryAddressOf(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  const isHost = rest.length > 0 && (/[.:A-Z]/.test(first) || first === 'localhost');
  const address = isHost ? first.toLowerCase() : DOCKER_HUB;
  return HUB_NAMES.has(address) ? DOCKER_HUB : address;
}

/** Maximum number of layers of an image, which the engine enforces. */
export const MAX_LAYERS = 128;

export const LayerProgress = z.object({
  /** First characters of the layer's digest. */
  id: Name,
  state: z.enum(['waiting', 'downloading', 'downloaded', 'extracting', 'done']),
  /** Compressed size; `bytes_total` is 0 until the download begins. */
  bytes_done: Bytes,
  bytes_total: Bytes,
  bytes_extracted: Bytes,
});
export type LayerProgress = z.output<typeof LayerProgress>;

/** Sums over all layers. Totals grow while the engine discovers further layers. */
export const PullProgress = z.object({
  layers_done: Amount,
  layers_total: Amount,
  bytes_done: Bytes,
  bytes_total: Bytes,
  bytes_extracted: Bytes,
  /** Download speed over the last few seconds. */
  bytes_per_second: Bytes,
  /** Time until all known layers are downloaded and extracted; null while there is no progress. */
  eta_seconds: z.int().nonnegative().max(MAX_WAIT_SECONDS).nullable(),
  layers: z.array(LayerProgress).max(MAX_LAYERS),
});
export type PullProgress = z.output<typeof PullProgress>;

/** Progress before the first byte. */
export const NO_PROGRESS: PullProgress = {
  layers_done: 0,
  layers_total: 0,
  bytes_done: 0,
  bytes_total: 0,
  bytes_extracted: 0,
  bytes_per_second: 0,
  eta_seconds: null,
  layers: [],
};

/** A completed pull. */
export const FinishedPull = z.object({
  /** By the host's clock; identifies and orders the pulls of a host. */
  finished_ms: HostTime,
  /** Time to the complete image, from the start of the first layer, or from when this pod joined another pod's pull. */
  took_ms: z.int().nonnegative().max(MAX_WAIT_MS),
  /** Compressed bytes that were downloaded in that time. */
  bytes: Bytes,
  /** Compressed size of all layers that had to be downloaded. */
  image_bytes: Bytes,
  /** True if no layer was present before, so that `image_bytes` is the size of the whole image. */
  is_whole: z.boolean(),
});
export type FinishedPull = z.output<typeof FinishedPull>;
