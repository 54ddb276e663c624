/** Whether a host reaches the world: POST /v1/egress-checks has its engine ask a registry for an image's digest (validator reference 5). */
import { z } from 'zod';
import { Name, Text } from './bounds.ts';

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
