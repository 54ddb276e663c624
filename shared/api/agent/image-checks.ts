/** Whether pods of given images could start: POST /v1/image-checks has the engine look for them (validator reference 5). */
import { z } from 'zod';
import { Name, Text } from './bounds.ts';
import { EgressCheckRequest } from './egress-checks.ts';

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
export const ImageStanding = z.object({
  image: Image,
  state: z.enum(['present', 'pullable', 'missing', 'unknown']),
  /** In words; empty where it can be had. */
  problem: Text,
});
export type ImageStanding = z.output<typeof ImageStanding>;

/** In the order in which they were asked for. */
export const ImageCheckResult = z.object({ images: z.array(ImageStanding).max(MAX_IMAGES) });
export type ImageCheckResult = z.output<typeof ImageCheckResult>;
