/** Refuses the character NUL in whatever a schema let pass: PostgreSQL has no text with it. */
import { refusedField } from '#shared/errors.ts';
import type { HttpServer } from '#shared/http/server.ts';

const NUL = '\0';
/** What has no NUL in its bytes as sent need not be searched. */
const NUL_IN_JSON = '\\u0000';
const NUL_IN_URL = '%00';

/** After the schemas, so that a field with rules of its own is refused in its own words. */
export function refuseNul(server: HttpServer): void {
  server.addHook('preHandler', async ({ rawBody, url, body, params, query }) => {
    const inBody = rawBody !== null && Buffer.from(rawBody).includes(NUL_IN_JSON);
    const field =
      (inBody ? pathToNul(body, 'body') : null) ??
      (url.includes(NUL_IN_URL) ? (pathToNul(params, 'path') ?? pathToNul(query, 'query')) : null);
    if (field !== null) throw refusedField(field, 'The character NUL is not allowed');
  });
}

/** Of the first text with a NUL in `value`, names of members included; null when there is none. */
function pathToNul(value: unknown, path: string): string | null {
  if (typeof value === 'string') return value.includes(NUL) ? path : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, member] of Object.entries(value)) {
    const found = name.includes(NUL) ? path : pathToNul(member, `${path}.${name}`);
    if (found !== null) return found;
  }
  return null;
}
