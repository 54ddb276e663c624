/** What a row of `pods` holds beyond its present generation while, or after, the pod is changed: JSON columns. */
import { z } from 'zod';
import { PodSpec, ReasonCode } from '#shared/api/agent/pod.ts';

/** Text that holds what `schema` describes: a row that parses can be worked with. */
export const jsonOf = (schema: z.ZodType) =>
  z.string().refine((text) => holds(text, schema), 'Corrupt');

const content = {
  generation: z.int(),
  spec_json: jsonOf(PodSpec),
  spec_hash: z.string(),
  image_id: z.string().nullable(),
  image_digest: z.string().nullable(),
};

/** A newer generation in preparation. With an image it may take the present one's place. */
export const StagedGeneration = z.object({
  ...content,
  /** Pulls in a row that failed; reason and message are the last one's. */
  attempts: z.int(),
  reason: ReasonCode.nullable(),
  message: z.string(),
});
export type StagedGeneration = z.output<typeof StagedGeneration>;

/** The last generation that was known to run. Its container is stopped and kept. */
export const FallbackGeneration = z.object({
  ...content,
  /** When it was stopped in favour of the present one; wall clock. */
  since_ms: z.int(),
  /** A login worked then: it has to work again. */
  login_worked: z.boolean(),
});
export type FallbackGeneration = z.output<typeof FallbackGeneration>;

/** A newer generation that was given up, and why. */
export const RefusedGeneration = z.object({
  generation: z.int(),
  spec_hash: z.string(),
  reason: ReasonCode,
  message: z.string(),
});
export type RefusedGeneration = z.output<typeof RefusedGeneration>;

function holds(text: string, schema: z.ZodType): boolean {
  try {
    return schema.safeParse(JSON.parse(text)).success;
  } catch {
    return false;
  }
}
