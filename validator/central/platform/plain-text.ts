/** Refuses NUL and halves of surrogate pairs in whatever a schema let pass: PostgreSQL has no text with them. */

import type { HttpServer } from '#shared/http/server.ts';
import { refusedField } from '#shared/runtime/errors.ts';

const NUL = '\0';
/** What has none of them in its bytes as sent need not be searched: JSON in UTF-8 holds both by escapes only. */
const ESCAPED = /\\u(?:0000|d[89a-f])/i;
const NUL_IN_URL = '%00';

/** After the schemas, so that a field with rules of its own is refused in its own words. */
export function refuseUnstorable(server: HttpServer): void {
  server.addHook('preHandler', async ({ rawBody, url, body, params, query }) => {
    const inBody = rawBody !== null && ESCAPED.test(Buffer.from(rawBody).toString('latin1'));
    const field =
      (inBody ? unstorableField(body, rawBody) : null) ??
      (url.includes(NUL_IN_URL)
        ? (pathToUnstorable(params, 'path') ?? pathToUnstorable(query, 'query'))
        : null);
    if (field !== null)
      throw refusedField(field, 'NUL and halves of surrogate pairs are not allowed');
  });
}

/** By the name that was sent: schemas rename members. Null when nothing unstorable has passed them. */
function unstorableField(body: unknown, rawBody: Uint8Array): string | null {
  const renamed = pathToUnstorable(body, 'body');
  if (renamed === null) return null;
  const sent: unknown = JSON.parse(Buffer.from(rawBody).toString('utf8'));
  return pathToUnstorable(sent, 'body') ?? renamed;
}

/** Of the first such text in `value`, names of members included; null when there is none. */
function pathToUnstorable(value: unknown, path: string): string | null {
  if (typeof value === 'string') return isStorable(value) ? null : path;
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, member] of Object.entries(value)) {
    const found = isStorable(name) ? pathToUnstorable(member, `${path}.${name}`) : path;
    if (found !== null) return found;
  }
  return null;
}

function isStorable(text: string): boolean {
  return !text.includes(NUL) && text.isWellFormed();
}
