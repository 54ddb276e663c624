/** Routes of API keys: /keys. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import {
  API_KEY_SCOPES,
  ApiKey,
  ApiKeyRefusals,
  ApiKeyScopes,
  CreateApiKey,
  UpdateApiKey,
} from './api-key.schemas.ts';
import type { ApiKeys } from './api-key.service.ts';

const tags = ['API keys'];

export function registerApiKeyRoutes(api: HttpServer, keys: ApiKeys): void {
  api.get(
    '/keys',
    { config: { auth: 'user' }, schema: { tags, response: { 200: z.array(ApiKey) } } },
    (request) => keys.list(userOf(request)),
  );
  api.post(
    '/keys',
    {
      config: { auth: 'session' },
      schema: { tags, body: CreateApiKey, response: { 200: ApiKey } },
    },
    (request) => keys.create(userOf(request), request.body),
  );
  api.get(
    '/keys/scopes',
    { config: { auth: 'none' }, schema: { tags, response: { 200: ApiKeyScopes } } },
    async () => API_KEY_SCOPES,
  );
  api.get(
    '/keys/:id',
    {
      config: { auth: 'user' },
      schema: { tags, params: IdParams, response: { 200: ApiKey } },
    },
    (request) => keys.get(userOf(request), request.params.id),
  );
  api.patch(
    '/keys/:id',
    {
      config: { auth: 'session' },
      schema: { tags, params: IdParams, body: UpdateApiKey, response: { 200: ApiKey } },
    },
    (request) => keys.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/keys/:id',
    {
      config: { auth: 'session' },
      schema: { tags, params: IdParams, response: { 200: ApiKey } },
    },
    (request) => keys.remove(userOf(request), request.params.id),
  );
  api.get(
    '/keys/:id/refusals',
    {
      config: { auth: 'user' },
      schema: { tags, params: IdParams, response: { 200: ApiKeyRefusals } },
    },
    (request) => keys.refusals(userOf(request), request.params.id),
  );
}
