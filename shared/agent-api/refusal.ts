/** What an agent or gateway said instead of doing it, as the error that we pass on. */
import { z } from 'zod';
import { ApiError, isErrorCode } from '../errors.ts';

/** What the agent's error body must hold to be passed on; anything else is `upstream_unavailable`. */
const AgentRefusal = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string() }),
  details: z.record(z.string(), z.unknown()).nullish(),
});

/** `answer` is the body as JSON, or undefined where it is none. */
export function refusalFrom(status: number, answer: unknown): ApiError {
  const refusal = AgentRefusal.safeParse(answer);
  if (!refusal.success || !isErrorCode(refusal.data.error.code)) {
    return new ApiError('upstream_unavailable', `The node answered with status ${status}`);
  }
  const { code, message, hint } = refusal.data.error;
  const { details } = refusal.data;
  return new ApiError(code, message, { status, hint, ...(details ? { details } : {}) });
}
