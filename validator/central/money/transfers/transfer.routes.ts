/** POST /users/me/transfer-credits and GET /users/me/transfer-history. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { actorOf, userOf } from '../../platform/identity.ts';
import {
  TRANSFER_FIELD_NAMES,
  TransferCreditsDto,
  TransferHistoryDto,
  TransferResponse,
} from './transfer.schemas.ts';
import type { Transfers } from './transfer.service.ts';

const tags = ['Balance'];
const config = { auth: 'user' } as const;

export function registerTransferRoutes(
  api: HttpServer,
  { transfers, ...once }: OnceDeps & { transfers: Transfers },
): void {
  api.post(
    '/users/me/transfer-credits',
    {
      // Limited like a search, because the answer reveals whether an address has an account.
      config: {
        ...config,
        once: 'transfer-credits',
        limit: 'search',
        fieldNames: TRANSFER_FIELD_NAMES,
      },
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
