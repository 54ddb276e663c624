/** The parts of the API's answers that actors read. */
import { z } from 'zod';
import type { Answer } from '../world/api.ts';

export const SignedUp = z.object({ api_key: z.string(), user: z.object({ id: z.string() }) });
export const LoggedIn = z.object({ data: z.object({ token: z.string() }) });
export const MadeToken = z.object({ data: z.object({ token: z.string() }) });
export const AddedNode = z.object({ data: z.object({ id: z.string() }) });
export const Rented = z.object({
  pod_id: z.string(),
  price_per_hour: z.number(),
  selected_executor: z.object({ id: z.string() }),
});
export const RentedNode = z.object({ pod_id: z.string() });
export const SeenPod = z.object({
  id: z.string(),
  status: z.string(),
  reason_code: z.string().nullable(),
});

const Refused = z.object({
  error: z.object({ code: z.string() }),
  details: z.object({ constraint: z.string().optional() }).nullish(),
});

const INTERNAL_ERROR = 500;

/** Returns the error code of an answer; null for a success. Throws for an internal error, which no request may cause. */
export function codeIn({ status, body }: Answer): string | null {
  if (status < 400) return null;
  if (status === INTERNAL_ERROR) throw new Error(`internal error: ${JSON.stringify(body)}`);
  return Refused.safeParse(body).data?.error.code ?? `status_${status}`;
}

/** Returns the constraint of a rental that no node met; undefined if the answer names none. */
export const constraintIn = ({ body }: Answer): string | undefined =>
  Refused.safeParse(body).data?.details?.constraint;

/** Parses a successful answer. Throws for any other. */
export function expectAnswer<T>(schema: z.ZodType<T>, answer: Answer, what: string): T {
  const parsed = schema.safeParse(answer.body);
  if (answer.status < 400 && parsed.success) return parsed.data;
  throw new Error(`${what}: status ${answer.status}, ${JSON.stringify(answer.body).slice(0, 300)}`);
}
