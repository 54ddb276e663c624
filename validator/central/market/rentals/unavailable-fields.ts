/** What the rent request can ask for in its form, but not yet in fact. Pure. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { RentExecutorRequest } from './rental.schemas.ts';

/** Throws 400 naming the first of them: a wish silently left out would be worse. */
export function refuseUnavailable(body: RentExecutorRequest): void {
  const wishes: Record<string, boolean> = {
    secret_names: (body.secret_names ?? []).length > 0,
  };
  for (const [name, wished] of Object.entries(wishes)) {
    if (!wished) continue;
    throw new ApiError('bad_request', `${name} is not available yet`, {
      hint: `Rent without ${name}.`,
    });
  }
}
