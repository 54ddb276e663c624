/** Wire schemas of sessions and log-in tickets. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { LIMIT, PAGE, SUCCESS, TOTAL } from '../../platform/openapi/field-texts.ts';
import { NaiveTime, Uuid } from '../../platform/wire.ts';

const MAX_TICKET_CHARS = 200;

export const LogInTicketResponse = z
  .object(
    described(
      { ticket: z.string(), expires_at: NaiveTime, expires_in_seconds: z.int() },
      {
        ticket: 'Ticket for one log-in. Put it only into the fragment (`#…`) of a link.',
        expires_at:
          'Time at which the ticket expires (UTC). It is invalid earlier if the session that created it ends.',
        expires_in_seconds: 'Seconds until the ticket expires.',
      },
    ),
  )
  .meta({ id: 'LogInTicketResponse', description: 'A ticket that begins one session.' });

export const ExchangeTicket = z
  .object(
    described(
      { ticket: z.string().min(1).max(MAX_TICKET_CHARS) },
      { ticket: 'Ticket from `POST /auth/tickets`, or from the link that `npm start` prints.' },
    ),
  )
  .meta({ id: 'ExchangeTicket', example: { ticket: 'ticket-from-the-link' } });

const SessionRow = z
  .object(
    described(
      {
        id: z.uuid(),
        client: z.string().nullable(),
        current: z.boolean(),
        created_at: NaiveTime,
        expires_at: NaiveTime,
      },
      {
        id: 'Id of the session.',
        client:
          'User-Agent of the program that logged in, at most 200 characters; null if it sent none.',
        current: 'True for the session of this request.',
        created_at: 'Time of the log-in (UTC).',
        expires_at: 'Time at which the session expires (UTC).',
      },
    ),
  )
  .meta({ id: 'Session', description: 'A valid session of the account.' });
export type SessionRow = z.output<typeof SessionRow>;

export const SessionPage = z
  .object(
    described(
      { sessions: z.array(SessionRow), page: z.int(), limit: z.int(), total: z.int() },
      { sessions: 'Sessions of this page, newest first.', page: PAGE, limit: LIMIT, total: TOTAL },
    ),
  )
  .meta({ id: 'SessionPage' });
export type SessionPage = z.output<typeof SessionPage>;

export const SessionParams = z.object({
  id: Uuid.meta({ description: 'Id of the session.' }),
});

export const SessionsEnded = z
  .object(described({ success: z.literal(true) }, { success: SUCCESS }))
  .meta({ id: 'SessionsEnded' });
