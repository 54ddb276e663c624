/** GET /users/me/events and GET /users/me/events/stream. */
import { z } from 'zod';
import { sendSse } from '#shared/http/event-stream.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { clientGone } from '#shared/http/upgrade.ts';
import type { CredentialWatch } from '../../accounts/auth/credential-watch.ts';
import type { Database } from '../../platform/database/tables.ts';
import { userOf } from '../../platform/identity.ts';
import { lastEventIdOf } from '../streams/resumable.ts';
import { EventStreamQuery } from '../streams/stream.schemas.ts';
import { AccountEvent, EventsQuery } from './event.schemas.ts';
import { listEventsOfAccount } from './event.service.ts';
import type { EventStreams } from './event-stream.ts';

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

export type EventStreamRoutesDeps = {
  events: EventStreams;
  credentials: CredentialWatch;
};

const DESCRIPTION =
  "An addition of this service: the account's events as they happen, as server-sent events `event` with the " +
  'rows of GET /users/me/events as data. To resume a stream, send the last id as Last-Event-ID or `since`; an ' +
  'unknown id is answered by a `gap` and all events. The last event is `end`.';

export function registerEventStreamRoutes(api: HttpServer, deps: EventStreamRoutesDeps): void {
  api.get(
    '/users/me/events/stream',
    {
      config: { auth: 'user', takesTicket: true },
      schema: { tags: ['Users'], description: DESCRIPTION, querystring: EventStreamQuery },
    },
    async (request, reply) => {
      const { accountId, credential } = userOf(request);
      const gone = clientGone(request, reply);
      const frames = await deps.events.open(
        {
          accountId,
          query: request.query,
          lastEventId: lastEventIdOf(request),
          revoked: deps.credentials.revoked(credential, gone),
        },
        gone,
      );
      await sendSse(reply, frames);
    },
  );
}
