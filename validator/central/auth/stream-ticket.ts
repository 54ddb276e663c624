/**
 * Tickets for WebSockets of browsers, which cannot send headers: single-use, short-lived, good for one pod,
 * and standing for the credential that asked for them. An addition of ours to the interface.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import { type Random, randomToken } from '#shared/random.ts';
import { sha256Hex } from '#shared/signing/canonical-request.ts';

export const TICKET_LIFETIME_MS = 30_000;
/** Unused ones at a time; kept in memory only, so that a restart of ours ends them. */
const MAX_PER_ACCOUNT = 50;
const MAX_TICKETS = 10_000;
const TICKET_BYTES = 32;
const RETRY_AFTER_SECONDS = '30';

/** The headers that proved who asked. */
export type CredentialHeaders = Pick<IncomingHttpHeaders, 'authorization'> & {
  'x-api-key'?: IncomingHttpHeaders[string];
};

type Ticket = {
  accountId: string;
  podId: string;
  credential: CredentialHeaders;
  expiresAtMs: number;
};

export type StreamTickets = ReturnType<typeof createStreamTickets>;

export function createStreamTickets({ clock, random }: { clock: Clock; random: Random }) {
  /** By the ticket's hash; insertion order is expiry order, because every ticket lives equally long. */
  const tickets = new Map<string, Ticket>();

  function dropExpired(): void {
    for (const [hash, { expiresAtMs }] of tickets) {
      if (expiresAtMs > clock.now()) return;
      tickets.delete(hash);
    }
  }

  function requireRoom(accountId: string): void {
    const own = tickets.values().filter((ticket) => ticket.accountId === accountId);
    if (tickets.size < MAX_TICKETS && own.toArray().length < MAX_PER_ACCOUNT) return;
    throw new ApiError('rate_limited', 'There are too many unused tickets', {
      headers: { 'Retry-After': RETRY_AFTER_SECONDS },
    });
  }

  return {
    /** Throws 429. */
    issue(accountId: string, podId: string, credential: CredentialHeaders) {
      dropExpired();
      requireRoom(accountId);
      const ticket = randomToken(random, TICKET_BYTES);
      const expiresAtMs = clock.now() + TICKET_LIFETIME_MS;
      tickets.set(sha256Hex(ticket), { accountId, podId, credential, expiresAtMs });
      return { ticket, expiresAtMs };
    },

    /** The credential behind the ticket of an upgrade request for its pod; spent by the asking. Null without a ticket. */
    redeem(request: FastifyRequest): CredentialHeaders | null {
      const given = (request.query as Record<string, unknown>)['ticket'];
      if (given === undefined || request.upgrade === null) return null;
      dropExpired();
      const hash = typeof given === 'string' ? sha256Hex(given) : '';
      const ticket = tickets.get(hash);
      tickets.delete(hash);
      const params = request.params as Record<string, string | undefined>;
      if (ticket !== undefined && ticket.podId === (params['pod_id'] ?? params['id'])) {
        return ticket.credential;
      }
      throw new ApiError('unauthorized', 'The ticket is unknown, used, expired or of another pod', {
        hint: 'Ask for a new one with POST /pods/{id}/stream-ticket.',
      });
    },
  };
}
