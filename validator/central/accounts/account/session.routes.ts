/** Routes of sessions and of the tickets that begin one. An API key has no access: it could outlive its own deletion. */
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database } from '../../platform/database/tables.ts';
import { userAgentOf, userOf } from '../../platform/identity.ts';
import { PageQuery } from '../../platform/portal-answer.ts';
import { lockAccount } from '../auth/account-access.ts';
import type { LogInTickets } from '../auth/log-in-ticket.ts';
import type { Sessions } from '../auth/session.ts';
import { LoginResponse } from './account.schemas.ts';
import type { Accounts } from './account.service.ts';
import {
  ExchangeTicket,
  LogInTicketResponse,
  SessionPage,
  SessionParams,
  SessionsEnded,
} from './session.schemas.ts';

export type SessionRoutesDeps = {
  db: Database;
  accounts: Pick<Accounts, 'logInByTicket'>;
  sessions: Sessions;
  logInTickets: LogInTickets;
};

const tags = ['Users'];
const config = { auth: 'session' } as const;
const forbidden = 'an API key cannot call this route';

export function registerSessionRoutes(api: HttpServer, deps: SessionRoutesDeps): void {
  registerTicketRoutes(api, deps);
  const { db, sessions } = deps;
  api.get(
    '/users/me/sessions',
    {
      config,
      schema: {
        tags,
        summary: 'List sessions',
        description: 'Returns the valid sessions of the account, newest first.',
        errors: { forbidden },
        querystring: PageQuery,
        response: { 200: SessionPage },
      },
    },
    async (request) => {
      const { accountId, sessionId } = sessionOf(request);
      const { page, limit } = request.query;
      const offset = (page - 1) * limit;
      const { rows, total } = await sessions.listOf(db, 'user', accountId, { offset, limit });
      const listed = rows.map(({ id, client, created_at, expires_at }) => ({
        id,
        client,
        current: id === sessionId,
        created_at: naiveUtc(created_at),
        expires_at: naiveUtc(expires_at),
      }));
      return { sessions: listed, page, limit, total };
    },
  );
  const ended = { success: true } as const;
  const response = { 200: SessionsEnded };
  api.delete(
    '/users/me/sessions',
    {
      config,
      schema: {
        tags,
        summary: 'End all other sessions',
        description: 'Ends every session of the account except the session of this request.',
        errors: { forbidden },
        retry: 'Safe: a repeat ends the sessions that began in between.',
        response,
      },
    },
    async (request) => {
      const { accountId, sessionId } = sessionOf(request);
      await db.transaction().execute(async (tx) => {
        // A concurrent log-in or exchange of a ticket stores its session under the same lock.
        await lockAccount(tx, { accountId });
        await sessions.revokeAll(tx, 'user', accountId, sessionId);
      });
      return ended;
    },
  );
  api.delete(
    '/users/me/sessions/:id',
    {
      config,
      schema: {
        tags,
        summary: 'End a session',
        description:
          'Ends one session of the account, and the sessions that its log-in tickets began. Their tokens and unused tickets become invalid at once.',
        errors: { forbidden, not_found: 'the account has no valid session with this id' },
        retry: 'Safe: a repeat returns 404, because the session has ended.',
        params: SessionParams,
        response,
      },
    },
    async (request) => {
      const { accountId } = userOf(request);
      if (await sessions.revoke(db, 'user', accountId, request.params.id)) return ended;
      throw new ApiError('not_found', 'Session not found', {
        hint: 'List the sessions with GET /users/me/sessions.',
      });
    },
  );
  api.post(
    '/auth/logout',
    {
      config,
      schema: {
        tags,
        summary: 'Log out',
        description:
          'Ends the session of this request, and the sessions that its log-in tickets began.',
        errors: { forbidden },
        retry: 'Safe: a repeat returns 401, because the session has ended.',
        response,
      },
    },
    async (request) => {
      const { accountId, sessionId } = sessionOf(request);
      await sessions.revoke(db, 'user', accountId, sessionId);
      return ended;
    },
  );
}

function registerTicketRoutes(
  api: HttpServer,
  { accounts, logInTickets }: SessionRoutesDeps,
): void {
  api.post(
    '/auth/tickets',
    {
      config,
      schema: {
        tags,
        summary: 'Create a log-in ticket',
        description:
          'Returns a ticket that begins one session of the account, for example in a browser on another device. The ticket can be used once, within an hour, and only while the session that created it is valid. An account has at most 10 unused tickets; a further one replaces the oldest.',
        errors: { forbidden },
        retry: 'Safe: a repeat creates another ticket; unused tickets expire.',
        response: { 200: LogInTicketResponse },
      },
    },
    async (request) => {
      const { accountId: subjectId, sessionId } = sessionOf(request);
      return logInTickets.issue('user', { subjectId, sessionId });
    },
  );
  api.post(
    '/auth/exchange-ticket',
    {
      config: { auth: 'none', limit: 'login' },
      schema: {
        tags,
        summary: 'Log in with a ticket',
        description:
          'Uses a ticket and returns a session token for 7 days, as a log-in does. If two requests send the same ticket, one of them succeeds.',
        errors: {
          ticket_invalid:
            'the ticket is unknown, used or expired, or the session that created it has ended',
          rate_limited: 'too many attempts from this address',
        },
        retry: 'Not safe: a ticket works once. If the answer was lost, create another ticket.',
        body: ExchangeTicket,
        response: { 200: LoginResponse },
      },
    },
    (request) => accounts.logInByTicket(request.body.ticket, userAgentOf(request)),
  );
}

function sessionOf(request: FastifyRequest): { accountId: string; sessionId: string } {
  const { accountId, credential } = userOf(request);
  if (credential.type !== 'session') throw new Error('the route does not require a session');
  return { accountId, sessionId: credential.sessionId };
}
