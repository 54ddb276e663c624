/** Transfers below /users/me (contract 9.2). */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { actorOf, userOf } from '../../platform/identity.ts';
import { TransferCreditsDto, TransferHistoryDto, TransferResponse } from './transfer.schemas.ts';
import type { Transfers } from './transfer.service.ts';

const tags = ['Balance'];
const config = { auth: 'user' } as const;

/** Registers them. */
export function registerTransferRoutes(
  api: HttpServer,
  { transfers, ...once }: OnceDeps & { transfers: Transfers },
): void {
  api.post(
    '/users/me/transfer-credits',
    {
      // As a search for an account: it tells whether an address has one.
      config: { ...config, once: 'transfer-credits', limit: 'search' },
      schema: { tags, body: TransferCreditsDto, response: { 200: TransferResponse } },
    },
    async (request, reply) => {
      const effects = (tx: Db) =>
        transfers.sendIn(tx, userOf(request), request.body, actorOf(request));
      await answerOnce(once, { request, reply }, { schema: TransferResponse, effects });
      return reply;
    },
  );
  for (const path of ['/users/me/transfer-history', '/users/me/transfer-credit-history']) {
    api.get(
      path,
      { config, schema: { tags, response: { 200: z.array(TransferHistoryDto) } } },
      (request) => transfers.history(userOf(request)),
    );
  }
}
