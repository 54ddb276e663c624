/** A login at an image registry, and which registry an image comes from. Pure. */
import { z } from 'zod';
import { Amount, Bytes, HostTime, MAX_WAIT_MS, MAX_WAIT_SECONDS, Name } from './bounds.ts';

/** What Docker Hub is called, whatever an image's name says of it. */
export const DOCKER_HUB = 'docker.io';
/** Images whose names begin so are made by each agent itself and never pulled. */
export const BUILTIN_HOST = 'podwright.local/';
const HUB_NAMES = new Set([
  DOCKER_HUB,
  'index.docker.io',
  'registry-1.docker.io',
  'hub.docker.com',
]);
const NO_CONTROL = /^[^\p{Cc}]*$/u;

export const RegistryAuth = z.strictObject({
  /** `host[:port]` as in the image's name; `docker.io` for names without one. */
  host: z
    .string()
    .max(255)
    .regex(/^[a-z0-9][a-z0-9.-]*(?::\d{1,5})?$/, 'Not a registry host'),
  username: z.string().min(1).max(255).regex(NO_CONTROL, 'Contains control characters'),
  password: z.string().min(1).max(8_192).regex(NO_CONTROL, 'Contains control characters'),
});
export type RegistryAuth = z.output<typeof RegistryAuth>;

/** `host[:port]` of an image's registry, lower case; a login for it is for no other. */
export function registryAddressOf(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const address = isHost ? first.toLowerCase() : DOCKER_HUB;
  return HUB_NAMES.has(address) ? DOCKER_HUB : address;
}

/** The engine itself takes no image with more. */
export const MAX_LAYERS = 128;

export const LayerProgress = z.object({
  /** The first characters of its digest. */
  id: Name,
  state: z.enum(['waiting', 'downloading', 'downloaded', 'extracting', 'done']),
  /** Of the compressed layer; `bytes_total` is 0 until its download begins. */
  bytes_done: Bytes,
  bytes_total: Bytes,
  bytes_extracted: Bytes,
});
export type LayerProgress = z.output<typeof LayerProgress>;

/** The sums run over the layers; totals grow while layers are still being discovered. */
export const PullProgress = z.object({
  layers_done: Amount,
  layers_total: Amount,
  bytes_done: Bytes,
  bytes_total: Bytes,
  bytes_extracted: Bytes,
  /** Downloaded over the last seconds. */
  bytes_per_second: Bytes,
  /** Until all that is known of is downloaded and extracted; null while nothing moves. */
  eta_seconds: z.int().nonnegative().max(MAX_WAIT_SECONDS).nullable(),
  layers: z.array(LayerProgress).max(MAX_LAYERS),
});
export type PullProgress = z.output<typeof PullProgress>;

/** Before the first byte. */
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

/** A pull that brought the whole image. */
export const FinishedPull = z.object({
  /** Host clock: tells pulls of one host apart, and which came later. */
  finished_ms: HostTime,
  /** From the first layer's start, or from when this pod joined the pull of another, to the image's being there. */
  took_ms: z.int().nonnegative().max(MAX_WAIT_MS),
  /** Downloaded in that time, compressed. */
  bytes: Bytes,
  /** Of all layers that had to come, compressed. */
  image_bytes: Bytes,
  /** No layer was there before: `image_bytes` is the whole image. */
  is_whole: z.boolean(),
});
export type FinishedPull = z.output<typeof FinishedPull>;
