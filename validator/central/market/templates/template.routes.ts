/** /templates. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { userIfAny, userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import { CreateTemplate, TemplateResponse, UpdateTemplate } from './template.schemas.ts';
import type { Templates } from './template.service.ts';

const tags = ['Templates'];

/** Registers the routes. Reading needs no credential; with one, the account's own templates are included. */
export function registerTemplateRoutes(api: HttpServer, templates: Templates): void {
  api.get(
    '/templates',
    {
      config: { auth: 'none' },
      schema: { tags, response: { 200: z.array(TemplateResponse) } },
    },
    (request) => templates.list(userIfAny(request)?.accountId ?? null),
  );
  api.get(
    '/templates/:id',
    {
      config: { auth: 'none' },
      schema: { tags, params: IdParams, response: { 200: TemplateResponse } },
    },
    (request) => templates.get(userIfAny(request)?.accountId ?? null, request.params.id),
  );
  api.post(
    '/templates',
    {
      config: { auth: 'user' },
      schema: { tags, body: CreateTemplate, response: { 200: TemplateResponse } },
    },
    (request) => templates.create(userOf(request), request.body),
  );
  api.put(
    '/templates/:id',
    {
      config: { auth: 'user' },
      schema: { tags, params: IdParams, body: UpdateTemplate, response: { 200: TemplateResponse } },
    },
    (request) => templates.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/templates/:id',
    {
      config: { auth: 'user' },
      schema: { tags, params: IdParams, response: { 200: TemplateResponse } },
    },
    (request) => templates.remove(userOf(request), request.params.id),
  );
}
