/** POST /pods/{id}/stream-ticket and POST /users/me/stream-ticket. */
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { type StreamTickets, TICKET_LIFETIME_MS } from '../../accounts/auth/stream-ticket.ts';
import { userOf } from '../../platform/identity.ts';
import { PodStreamParams, StreamTicketResponse } from './stream.schemas.ts';

export type StreamTicketRoutesDeps = {
  tickets: StreamTickets;
  /** Throws 404 unless the pod belongs to the account. */
  requireOwnPod(accountId: string, podId: string): Promise<unknown>;
};

const MS_PER_SECOND = 1_000;
const response = { 200: StreamTicketResponse };
const config = { auth: 'user' } as const;

export function registerStreamTicketRoutes(api: HttpServer, deps: StreamTicketRoutesDeps): void {
  async function issue(request: FastifyRequest, podId: string | null) {
    const { authorization, 'x-api-key': key } = request.headers;
    const credential = { authorization, 'x-api-key': key };
    const issued = await deps.tickets.issue(userOf(request).accountId, podId, credential);
    return {
      ticket: issued.ticket,
      expires_at: naiveUtc(issued.expiresAtMs),
      expires_in_seconds: TICKET_LIFETIME_MS / MS_PER_SECOND,
    };
  }

  const params = PodStreamParams;
  api.post(
    '/pods/:id/stream-ticket',
    {
      config,
      schema: {
        tags: ['Pods'],
        summary: 'Create a ticket for a WebSocket of a pod',
        description:
          'Returns a ticket for one WebSocket of this pod (its log or its terminal). Browsers need tickets, because they cannot send headers. The ticket can be used once, within 30 seconds, in the query parameter `ticket`.',
        errors: {
          pod_not_found: 'the account has no such pod',
          rate_limited: 'too many tickets are unused',
        },
        retry: 'Safe: a repeat creates another ticket; unused tickets expire.',
        params,
        response,
      },
    },
    async (request) => {
      await deps.requireOwnPod(userOf(request).accountId, request.params.id);
      return issue(request, request.params.id);
    },
  );
  api.post(
    '/users/me/stream-ticket',
    {
      config,
      schema: {
        tags: ['Users'],
        summary: 'Create a ticket for an event stream',
        description:
          "Returns a ticket for one stream of the account's events. Browsers need tickets, because their EventSource cannot send headers. The ticket can be used once, within 30 seconds, in the query parameter `ticket`.",
        errors: { rate_limited: 'too many tickets are unused' },
        retry: 'Safe: a repeat creates another ticket; unused tickets expire.',
        response,
      },
    },
    (request) => issue(request, null),
  );
}
