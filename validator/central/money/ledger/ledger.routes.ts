/** GET /users/me/ledger: the caller's journal, as JSON or CSV. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Database } from '../../platform/database/tables.ts';
import { userOf } from '../../platform/identity.ts';
import { journalPage } from './journal.service.ts';
import { LedgerLine, LedgerPage, LedgerQuery } from './ledger.schemas.ts';
import { csvValue } from './ledger-export.ts';

const Csv = z.string().meta({ description: 'With format=csv' });

export type LedgerRoutesDeps = {
  db: Database;
  /** Posts the use of the account's running pods. */
  postUse(accountId: string): Promise<void>;
};

export function registerLedgerRoutes(api: HttpServer, { db, postUse }: LedgerRoutesDeps): void {
  api.get(
    '/users/me/ledger',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Users'],
        summary: "Read the account's journal",
        description:
          'Returns payments, grants, reservations and spending since the last archived month, oldest first or newest first. Use of running pods is posted before, except use of the last minute. Each line has its cause and the balance after the line. `format=csv` returns the same lines as text/csv; the next page begins `after` the last `seq`.',
        querystring: LedgerQuery,
        response: { 200: z.union([LedgerPage, Csv]) },
      },
    },
    async (request, reply) => {
      const { accountId } = userOf(request);
      await postUse(accountId);
      const page = await journalPage(db, accountId, request.query);
      if (request.query.format === 'json') return page;
      return reply.type('text/csv; charset=utf-8').serializer(String).send(csvOf(page.lines));
    },
  );
}

function csvOf(lines: readonly LedgerLine[]): string {
  const columns = LedgerLine.keyof().options;
  const rows = lines.map((line) => columns.map((column) => csvValue(line[column])).join(','));
  return `${[columns.join(','), ...rows].join('\r\n')}\r\n`;
}
