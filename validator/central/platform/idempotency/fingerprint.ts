/** What makes two requests under one Idempotency-Key the same request (marketplace reference 1.1). Pure. */
import { ApiError } from '#shared/runtime/errors.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';

/** What a key is made of. */
export const WELL_FORMED = /^[A-Za-z0-9_.:-]{1,255}$/;

/** The key of the header, null without one. Throws 422: empty, quoted and repeated headers are malformed. */
export function idempotencyKeyOf(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header === 'string' && WELL_FORMED.test(header)) return header;
  throw new ApiError('idempotency_key_invalid', 'The Idempotency-Key header is malformed');
}

/** Over route, path ids and body: key order, white space and null against absent make no difference. */
export function fingerprintOf(route: string, ids: readonly string[], body: unknown): string {
  return sha256Hex(JSON.stringify([route, ids, canonical(body)]));
}

/** Members sorted, nulls left out. Elements of lists stay as they are: their places count. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .filter(([, member]) => member !== null && member !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => [name, canonical(member)]);
  // Pairs instead of an object: integer-like names would be reordered, __proto__ lost.
  return { members };
}
