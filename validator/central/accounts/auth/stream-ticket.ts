/**
 * Tickets for streams opened by browsers, which cannot send headers. A ticket is single-use, expires soon, is valid for
 * one pod or for the account's feed, and carries the credential that requested it. Tickets are stored in the database,
 * so any process can redeem them.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { deriveKey } from './derived-key.ts';
import {
  countTickets,
  deleteExpiredTickets,
  insertTicket,
  redeemTicket,
  type StoredTicket,
} from './stream-ticket.store.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * True if the route accepts an account's ticket on plain requests too, not only on WebSocket upgrades: a browser's
     * EventSource cannot send headers.
     */
    takesTicket?: true;
  }
}

export const TICKET_LIFETIME_MS = 30_000;
/** Maximum number of unused tickets of one account. */
const MAX_PER_ACCOUNT = 50;
/** Maximum number of unused tickets of all accounts. */
const MAX_TICKETS = 10_000;
const TICKET_BYTES = 32;
const RETRY_AFTER_SECONDS = '30';

/** Headers with the credential of the request that obtained the ticket. */
export type CredentialHeaders = Pick<IncomingHttpHeaders, 'authorization'> & {
  'x-api-key'?: IncomingHttpHeaders[string];
};

const SealedCredential = z.object({
  authorization: z.string().optional(),
  'x-api-key': z.string().optional(),
});

export type StreamTickets = ReturnType<typeof createStreamTickets>;

export function createStreamTickets(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
}) {
  const { db, clock, random } = deps;
  const sealing = createSealing({ key: deriveKey(deps.secret, 'stream-ticket-sealing'), random });

  function credentialOf({ credential_sealed, ticket_hash }: StoredTicket): CredentialHeaders {
    return SealedCredential.parse(JSON.parse(sealing.open(credential_sealed, ticket_hash)));
  }

  return {
    /**
     * Issues a ticket for a stream of this pod, or of the account if `podId` is null. Throws 429 if too many tickets
     * are unused.
     */
    async issue(accountId: string, podId: string | null, credential: CredentialHeaders) {
      const ticket = randomToken(random, TICKET_BYTES);
      const hash = sha256Hex(ticket);
      const sealed = sealing.seal(JSON.stringify(credential), hash);
      const expiresAtMs = clock.now() + TICKET_LIFETIME_MS;
      await db.transaction().execute(async (tx) => {
        await lockRow(tx, 'accounts', accountId);
        const { own, all } = await countTickets(tx, accountId, clock.now());
        if (own >= MAX_PER_ACCOUNT || all >= MAX_TICKETS) throw tooMany();
        await insertTicket(tx, {
          ticket_hash: hash,
          account_id: accountId,
          pod_id: podId,
          credential_sealed: sealed,
          expires_at: expiresAtMs,
        });
      });
      return { ticket, expiresAtMs };
    },

    /**
     * Redeems a request's ticket and returns its credential. Returns null if the request has no ticket or the route
     * accepts none. Throws 401.
     */
    async redeem(request: FastifyRequest): Promise<CredentialHeaders | null> {
      const sent = (request.query as Record<string, unknown>)['ticket'];
      const isAccepted =
        request.upgrade !== null || request.routeOptions.config.takesTicket === true;
      if (sent === undefined || !isAccepted) return null;
      const hash = typeof sent === 'string' ? sha256Hex(sent) : '';
      const ticket = await redeemTicket(db, hash);
      const isLive = ticket !== undefined && ticket.expires_at > clock.now();
      if (isLive && ticket.pod_id === podOf(request)) return credentialOf(ticket);
      throw new ApiError(
        'unauthorized',
        'The ticket is unknown, used, expired or for another stream',
        {
          hint: 'Request a new ticket with POST /pods/{id}/stream-ticket or /users/me/stream-ticket.',
        },
      );
    },

    sweep: (tx: Db) => deleteExpiredTickets(tx, clock.now()),
  };
}

function podOf({ params }: FastifyRequest): string | null {
  const named = params as Record<string, string | undefined>;
  return named['pod_id'] ?? named['id'] ?? null;
}

function tooMany(): ApiError {
  return new ApiError('rate_limited', 'There are too many unused tickets', {
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
  });
}
