/** POST /users/me/transfer-credits and GET /users/me/transfer-history. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { RecordRefusal } from '../../accounts/api-keys/budget-refusal.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { actorOf, userOf } from '../../platform/identity.ts';
import {
  TRANSFER_FIELD_NAMES,
  TransferCreditsDto,
  TransferHistoryDto,
  TransferHistoryQuery,
  TransferResponse,
} from './transfer.schemas.ts';
import type { Transfers } from './transfer.service.ts';

const tags = ['Balance'];
const config = { auth: 'user' } as const;

export function registerTransferRoutes(
  api: HttpServer,
  {
    transfers,
    recordRefusal,
    ...once
  }: OnceDeps & { transfers: Transfers; recordRefusal: RecordRefusal },
): void {
  api.post(
    '/users/me/transfer-credits',
    {
      // Rate-limited like a search, because the answer reveals whether an address has an account.
      config: {
        ...config,
        once: 'transfer-credits',
        limit: 'search',
        fieldNames: TRANSFER_FIELD_NAMES,
      },
      schema: {
        tags,
        summary: 'Transfer credit to another account',
        description:
          'Moves paid credit at once; a transfer cannot be undone. Money that is held for pods cannot be transferred, and neither can granted credit.',
        errors: {
          bad_request: 'the recipient is the caller',
          not_found: 'no account has this address',
          email_not_verified: 'the caller has not confirmed its address',
          insufficient_balance: 'the credit that can be transferred is below the amount',
          API_KEY_BUDGET_EXCEEDED: 'a budget of the API key does not cover the amount',
          rate_limited: 'the limit is strict, because the answer reveals whether an account exists',
        },
        body: TransferCreditsDto,
        response: { 200: TransferResponse },
      },
    },
    async (request, reply) => {
      const effects = (tx: Db) =>
        transfers.sendIn(tx, userOf(request), request.body, actorOf(request));
      await answerOnce(
        once,
        { request, reply },
        {
          schema: TransferResponse,
          effects,
          onRefused: (error) => recordRefusal(request, error),
        },
      );
      return reply;
    },
  );
  for (const path of ['/users/me/transfer-history', '/users/me/transfer-credit-history']) {
    api.get(
      path,
      {
        config,
        schema: {
          tags,
          summary: 'List transfers of credit',
          description:
            'Returns transfers that the account sent or received, newest first. Both paths are the same operation.',
          querystring: TransferHistoryQuery,
          response: { 200: z.array(TransferHistoryDto) },
        },
      },
      (request) => transfers.history(userOf(request), request.query),
    );
  }
}
