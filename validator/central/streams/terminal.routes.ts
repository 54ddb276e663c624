/** GET /pods/{id}/terminal and POST /pods/{id}/stream-ticket: additions of ours to the interface. */
import type { FastifyRequest } from 'fastify';
import { MAX_TERMINAL_MESSAGE_BYTES } from '#shared/agent-api/terminal.ts';
import { naiveUtc } from '#shared/clock.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { clientGone, upgradeRequired } from '#shared/websocket/upgrade.ts';
import { userOf } from '../auth/identity.ts';
import { type StreamTickets, TICKET_LIFETIME_MS } from '../auth/stream-ticket.ts';
import { PodStreamParams, PodTerminalQuery, StreamTicketResponse } from './stream.schemas.ts';
import type { Terminals } from './terminal.service.ts';

export type TerminalRoutesDeps = {
  terminals: Terminals;
  tickets: StreamTickets;
  /** Throws 404 unless the pod is the account's. */
  requireOwnPod(accountId: string, podId: string): Promise<unknown>;
  credentialStands(request: FastifyRequest): Promise<boolean>;
};

const MS_PER_SECOND = 1_000;
const tags = ['Pods'];
const params = PodStreamParams;
const TERMINAL =
  'An addition of this service: a WebSocket with a login shell in a running pod. Binary messages are the ' +
  "terminal's bytes both ways; text messages are JSON: {type:'resize',cols,rows} from the client, " +
  "{type:'exit',code} last from the server. No cookie is a credential here, so that the Origin header " +
  'does not matter.';
const TICKET =
  'An addition of this service: a ticket for one WebSocket of this pod (its logs or its terminal), for ' +
  'browsers, which cannot send headers. It can be used once, in the query parameter `ticket`.';

/** Registers them. */
export function registerTerminalRoutes(api: HttpServer, deps: TerminalRoutesDeps): void {
  api.get(
    '/pods/:id/terminal',
    {
      config: { auth: 'user', websocket: true },
      schema: { tags, description: TERMINAL, params, querystring: PodTerminalQuery },
    },
    async (request, reply) => {
      if (request.upgrade === null) throw upgradeRequired();
      const { accept } = request.upgrade;
      const terminal = await deps.terminals.open(
        {
          identity: userOf(request),
          podId: request.params.id,
          query: request.query,
          requestId: request.id,
          stillAllowed: () => deps.credentialStands(request),
        },
        clientGone(request, reply),
      );
      try {
        const near = await accept(reply, { maxMessageBytes: MAX_TERMINAL_MESSAGE_BYTES });
        await terminal.join(near);
      } catch (error) {
        terminal.abandon();
        throw error;
      }
      return reply;
    },
  );
  api.post(
    '/pods/:id/stream-ticket',
    {
      config: { auth: 'user' },
      schema: { tags, description: TICKET, params, response: { 200: StreamTicketResponse } },
    },
    async (request) => {
      const { accountId } = userOf(request);
      await deps.requireOwnPod(accountId, request.params.id);
      const { authorization, 'x-api-key': apiKey } = request.headers;
      const credential = { authorization, 'x-api-key': apiKey };
      const issued = deps.tickets.issue(accountId, request.params.id, credential);
      return {
        ticket: issued.ticket,
        expires_at: naiveUtc(issued.expiresAtMs),
        expires_in_seconds: TICKET_LIFETIME_MS / MS_PER_SECOND,
      };
    },
  );
}
