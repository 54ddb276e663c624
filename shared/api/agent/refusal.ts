/** What an agent or gateway said instead of doing it, as the error that we pass on. */
import { z } from 'zod';
import { ApiError, isErrorCode } from '../../runtime/errors.ts';

/** What the agent's error body must hold to be passed on; anything else is `upstream_unavailable`. */
const AgentRefusal = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string() }),
  details: z.record(z.string(), z.unknown()).nullish(),
});

/** Somebody answered, and it is none of the answers that an agent gives. */
export class InvalidAnswer extends Error {
  override name = 'InvalidAnswer';
}

/** Whether what came back is why the call failed, not that nothing came. */
export function isInvalidAnswer(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof InvalidAnswer;
}

/** `answer` is the body as JSON, or undefined where it is none. */
export function refusalFrom(status: number, answer: unknown): ApiError {
  const refusal = AgentRefusal.safeParse(answer);
  if (!refusal.success || !isErrorCode(refusal.data.error.code)) {
    // The status is for logs alone: a provider may name any address, and reads what became of the call.
    const cause = new InvalidAnswer(`status ${status}`);
    return new ApiError('upstream_unavailable', 'The node answered as no agent does', { cause });
  }
  const { code, message, hint } = refusal.data.error;
  const { details } = refusal.data;
  return new ApiError(code, message, { status, hint, ...(details ? { details } : {}) });
}
