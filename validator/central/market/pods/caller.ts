/** Who asks, as the services of pods and rentals want it. */
import type { FastifyRequest } from 'fastify';
import { type Actor, actorOf, type UserIdentity, userOf } from '../../platform/identity.ts';

/** The account and credential, and how events name them. */
export type Caller = { identity: UserIdentity; actor: Actor };

/** The caller of a route that demands an account. */
export function callerOf(request: FastifyRequest): Caller {
  return { identity: userOf(request), actor: actorOf(request) };
}
