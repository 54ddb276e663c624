/** Which roles a route admits: the listed routes of the agent, the public ones, and nothing else. Pure. */

import { IDENTITY_PATH } from '#shared/api/agent/identity.ts';
import { AGENT_ROUTES } from '#shared/api/agent/routes.ts';
import type { Role } from '#shared/signing/request-verifier.ts';

/** Routes that need no signature: they tell nothing of pods or keys. */
export const PUBLIC_PATHS = [
  '/healthz',
  '/readyz',
  '/version',
  '/metrics',
  '/update-status',
  IDENTITY_PATH,
];

const PUBLIC = new Set(PUBLIC_PATHS);
const ROLES_OF = new Map<string, readonly Role[]>(
  AGENT_ROUTES.map((route) => [`${route.method} ${route.path}`, route.roles]),
);

/** `pattern` is the route as it was registered, so no spelling of a path can reach another entry. */
export function rolesFor(method: string, pattern: string): 'public' | readonly Role[] | null {
  if (PUBLIC.has(pattern)) return method === 'GET' || method === 'HEAD' ? 'public' : null;
  return ROLES_OF.get(`${method} ${pattern}`) ?? null;
}
