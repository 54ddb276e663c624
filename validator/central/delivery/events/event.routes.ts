/** GET /users/me/events (contract 9.3). */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../accounts/auth/identity.ts';
import type { Database } from '../../platform/database/tables.ts';
import { AccountEvent, EventsQuery } from './event.schemas.ts';
import { listEventsOfAccount } from './event.service.ts';

/** Registers the account's event log. */
export function registerEventRoutes(api: HttpServer, { db }: { db: Database }): void {
  api.get(
    '/users/me/events',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Users'],
        querystring: EventsQuery,
        response: { 200: z.array(AccountEvent) },
      },
    },
    (request) => listEventsOfAccount(db, userOf(request).accountId, request.query),
  );
}
