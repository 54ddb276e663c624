/**
 * Tickets that begin a session: single-use, and valid for an hour, but no longer than the session that created them.
 * They let a link open a page in a browser without a password. Only their hashes are stored. A session that a ticket
 * began ends with the session that created the ticket: a person who steals a session can make tickets.
 */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import {
  deleteExpiredLogInTickets,
  deleteOlderTickets,
  findLogInTicket,
  insertLogInTicket,
  useLogInTicket,
} from './log-in-ticket.store.ts';
import { type SessionKind, type Sessions, type SignedSession, SUBJECTS } from './session.ts';

export const LOG_IN_TICKET_LIFETIME_MS = 3_600_000;
/** Maximum number of unused tickets of an account or provider. A further ticket replaces the oldest. */
export const MAX_LOG_IN_TICKETS = 10;
const TICKET_BYTES = 32;
const MS_PER_SECOND = 1_000;

/** Session that creates a ticket, and its account or provider. */
export type TicketCreator = { subjectId: string; sessionId: string };

export type LogInTickets = ReturnType<typeof createLogInTickets>;

export function createLogInTickets(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  sessions: Pick<Sessions, 'sign' | 'listLive'>;
  /** Default: LOG_IN_TICKET_LIFETIME_MS. */
  lifetimeMs?: number | undefined;
}) {
  const { db, clock, random, sessions, lifetimeMs = LOG_IN_TICKET_LIFETIME_MS } = deps;

  return {
    /** Creates a ticket, in the form of the wire (`LogInTicketResponse`). */
    async issue(kind: SessionKind, { subjectId, sessionId }: TicketCreator) {
      const ticket = randomToken(random, TICKET_BYTES);
      const nowMs = clock.now();
      const expiresAtMs = nowMs + lifetimeMs;
      await db.transaction().execute(async (tx) => {
        // Concurrent requests of one owner wait for each other, so that none counts the same tickets.
        await lockRow(tx, SUBJECTS[kind], subjectId);
        await deleteOlderTickets(tx, { kind, subject_id: subjectId }, MAX_LOG_IN_TICKETS - 1);
        await insertLogInTicket(tx, {
          ticket_hash: sha256Hex(ticket),
          session_id: sessionId,
          kind,
          subject_id: subjectId,
          created_at: nowMs,
          expires_at: expiresAtMs,
        });
      });
      return {
        ticket,
        expires_at: naiveUtc(expiresAtMs),
        expires_in_seconds: lifetimeMs / MS_PER_SECOND,
      };
    },

    /**
     * Uses the ticket and begins a session of its owner, in one transaction. Throws `ticket_invalid` if the ticket is
     * unknown, used or expired, or if the session that created it is no longer valid.
     */
    async exchange(
      kind: SessionKind,
      ticket: string,
      client: string | null,
    ): Promise<{ subjectId: string; session: SignedSession }> {
      const hash = sha256Hex(ticket);
      const found = await findLogInTicket(db, kind, hash);
      if (found === undefined || found.expires_at <= clock.now()) throw invalidTicket();
      const { subject_id: subjectId, session_id: creator } = found;
      const session = await sessions.sign(kind, subjectId, client, creator);
      await db.transaction().execute(async (tx) => {
        // A concurrent change of password or removal of the account ends its sessions under the same lock.
        await lockRow(tx, SUBJECTS[kind], subjectId);
        if (!(await useLogInTicket(tx, hash))) throw invalidTicket();
        if ((await sessions.listLive(tx, [creator])).length === 0) throw invalidTicket();
        await session.store(tx);
      });
      return { subjectId, session };
    },

    sweep: (tx: Db) => deleteExpiredLogInTickets(tx, clock.now()),
  };
}

function invalidTicket(): ApiError {
  return new ApiError('ticket_invalid', 'The ticket is unknown, used or expired');
}
