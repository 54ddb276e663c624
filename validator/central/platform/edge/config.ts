/** CENTRAL_CORS_ORIGINS: the web pages that may call. */
import { z } from 'zod';
import type { AllowedOrigins } from './cors.ts';

/** An origin as browsers write it: no path, no slash at the end. */
const Origin = z.union([
  z.literal('*'),
  z
    .string()
    .regex(/^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?$/, 'origins look like https://a.example.org'),
]);

/** For the schema of a process's configuration. */
export const CorsVariables = z.object({
  CENTRAL_CORS_ORIGINS: z
    .string()
    .transform((text) => text.split(',').map((origin) => origin.trim()))
    .pipe(z.array(Origin))
    .optional(),
});

/** Nobody when it is not set. */
export function corsOriginsFrom(variables: z.output<typeof CorsVariables>): AllowedOrigins {
  return variables.CENTRAL_CORS_ORIGINS ?? [];
}
