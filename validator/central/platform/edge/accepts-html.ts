import type { FastifyRequest } from 'fastify';

/** Returns true if the Accept header names HTML, as browsers do; wildcards do not count. */
export function acceptsHtml({ headers: { accept = '' } }: FastifyRequest): boolean {
  return /(?:^|,)\s*text\/html\s*(?:;|,|$)/i.test(accept);
}
