/** How far an image has come (agent reference 6). */
import { z } from 'zod';

/** The engine itself takes no image with more. */
export const MAX_LAYERS = 128;

export const LayerProgress = z.object({
  /** The first characters of its digest. */
  id: z.string(),
  state: z.enum(['waiting', 'downloading', 'downloaded', 'extracting', 'done']),
  /** Of the compressed layer; `bytes_total` is 0 until its download begins. */
  bytes_done: z.int(),
  bytes_total: z.int(),
  bytes_extracted: z.int(),
});
export type LayerProgress = z.output<typeof LayerProgress>;

/** The sums run over the layers; totals grow while layers are still being discovered. */
export const PullProgress = z.object({
  layers_done: z.int(),
  layers_total: z.int(),
  bytes_done: z.int(),
  bytes_total: z.int(),
  bytes_extracted: z.int(),
  /** Downloaded over the last seconds. */
  bytes_per_second: z.int(),
  /** Until all that is known of is downloaded and extracted; null while nothing moves. */
  eta_seconds: z.int().nullable(),
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
  finished_ms: z.int(),
  /** From the first layer's start, or from when this pod joined the pull of another, to the image's being there. */
  took_ms: z.int().nonnegative(),
  /** Downloaded in that time, compressed. */
  bytes: z.int().nonnegative(),
  /** Of all layers that had to come, compressed. */
  image_bytes: z.int().nonnegative(),
  /** No layer was there before: `image_bytes` is the whole image. */
  is_whole: z.boolean(),
});
export type FinishedPull = z.output<typeof FinishedPull>;
