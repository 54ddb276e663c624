/** Routes of API keys: /keys. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import {
  ApiKey,
  ApiKeyRefusals,
  ApiKeyScopes,
  CreateApiKey,
  KEY_FIELD_NAMES,
  UpdateApiKey,
} from './api-key.schemas.ts';
import type { ApiKeys } from './api-key.service.ts';
import { SCOPE_CATALOGUE } from './scope-catalogue.ts';

const tags = ['API keys'];
const ownKeyErrors = {
  not_found: 'no key has this id',
  forbidden: 'the key belongs to another account',
};

export function registerApiKeyRoutes(api: HttpServer, deps: OnceDeps & { keys: ApiKeys }): void {
  const { keys } = deps;
  api.get(
    '/keys',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: "List the account's API keys",
        description:
          'Returns every API key with its scopes, budgets and spending. Only callers with a session get the full keys.',
        response: { 200: z.array(ApiKey) },
      },
    },
    (request) => keys.list(userOf(request)),
  );
  api.post(
    '/keys',
    {
      config: { auth: 'session', once: 'api-key', fieldNames: KEY_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Create an API key',
        description:
          'Creates a key and returns it in full. A key without `scopes` has all rights; a key without budgets may spend the whole balance of the account. An account has at most 100 keys. A misspelt field is rejected, and the error names the field that was probably meant.',
        errors: { bad_request: 'the account has 100 keys, or `expires_at` is in the past' },
        body: CreateApiKey,
        response: { 200: ApiKey },
      },
    },
    async (request, reply) => {
      const effects = (tx: Db) => keys.createIn(tx, userOf(request), request.body);
      await answerOnce(deps, { request, reply }, { schema: ApiKey, effects });
      return reply;
    },
  );
  api.get(
    '/keys/scopes',
    {
      config: { auth: 'none' },
      schema: {
        tags,
        summary: 'Read the catalogue of scopes',
        description: 'Returns the scopes that a key may have, and the routes that spend money.',
        response: { 200: ApiKeyScopes },
      },
    },
    async () => SCOPE_CATALOGUE,
  );
  api.get(
    '/keys/:id',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Read an API key',
        description:
          'Returns one key of the account. Only a caller with a session gets the full key.',
        errors: ownKeyErrors,
        params: IdParams,
        response: { 200: ApiKey },
      },
    },
    (request) => keys.get(userOf(request), request.params.id),
  );
  api.patch(
    '/keys/:id',
    {
      config: { auth: 'session', fieldNames: KEY_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Change an API key',
        description:
          'Changes the given members; scopes are fixed at creation. A lower budget that is already used up stops the running pods of the key at once. A higher budget starts the pods that a budget had stopped, unless they were deleted.',
        errors: ownKeyErrors,
        retry: 'Safe: a repeat stores the same values again.',
        params: IdParams,
        body: UpdateApiKey,
        response: { 200: ApiKey },
      },
    },
    (request) => keys.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/keys/:id',
    {
      config: { auth: 'session' },
      schema: {
        tags,
        summary: 'Delete an API key',
        description:
          'Deletes a key: later requests with the key get 401, and its streams end. Pods that it rented continue, and its budgets still apply to them.',
        errors: ownKeyErrors,
        retry: 'Safe: a repeat gets 404 `not_found`.',
        params: IdParams,
        response: { 200: ApiKey },
      },
    },
    (request) => keys.remove(userOf(request), request.params.id),
  );
  api.get(
    '/keys/:id/refusals',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'List requests that a budget refused',
        description:
          'Returns the last 100 requests with this key that got 402 `API_KEY_BUDGET_EXCEEDED`, newest first.',
        errors: ownKeyErrors,
        params: IdParams,
        response: { 200: ApiKeyRefusals },
      },
    },
    (request) => keys.refusals(userOf(request), request.params.id),
  );
}
