/** /templates. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { userIfAny, userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import {
  CreateTemplate,
  TemplateResponse,
  TemplatesQuery,
  UpdateTemplate,
} from './template.schemas.ts';
import type { Templates } from './template.service.ts';

const tags = ['Templates'];

/** Registers the routes. Reading needs no credential. With a credential, the account's own templates are included. */
export function registerTemplateRoutes(
  api: HttpServer,
  deps: OnceDeps & { templates: Templates },
): void {
  const { templates } = deps;
  api.get(
    '/templates',
    {
      config: { auth: 'none' },
      schema: {
        tags,
        summary: 'List templates',
        description:
          "Returns the official and the public templates; with a credential also the account's own templates. Official templates are first, then the others, oldest first.",
        querystring: TemplatesQuery,
        response: { 200: z.array(TemplateResponse) },
      },
    },
    (request) => templates.list(userIfAny(request)?.accountId ?? null, request.query),
  );
  api.get(
    '/templates/:id',
    {
      config: { auth: 'none' },
      schema: {
        tags,
        summary: 'Read a template',
        description: "Returns an official or public template, or one of the account's own.",
        errors: {
          template_not_found: 'there is no such template, or it is private to another account',
        },
        params: IdParams,
        response: { 200: TemplateResponse },
      },
    },
    (request) => templates.get(userIfAny(request)?.accountId ?? null, request.params.id),
  );
  api.post(
    '/templates',
    {
      config: { auth: 'user', once: 'template' },
      schema: {
        tags,
        summary: 'Create a template',
        description:
          'Stores a template. Clients may rent the template at once, without waiting for its check. At most 20 templates per hour and account.',
        errors: {
          template_invalid: 'the image, a command, a variable or a volume is malformed',
          rate_limited: 'the account created 20 templates within an hour',
        },
        body: CreateTemplate,
        response: { 200: TemplateResponse },
      },
    },
    async (request, reply) => {
      const effects = await templates.creation(userOf(request), request.body);
      await answerOnce(deps, { request, reply }, { schema: TemplateResponse, effects });
      return reply;
    },
  );
  api.put(
    '/templates/:id',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Change a template',
        description:
          'Changes the given members. Absent and null members are unchanged, and read-only and unknown members are ignored, so that clients may send a whole row. Running pods retain their copy.',
        errors: {
          template_not_found: 'the account has no such template',
          template_invalid: 'the image, a command, a variable or a volume is malformed',
        },
        retry: 'Safe: a repeat stores the same values again.',
        params: IdParams,
        body: UpdateTemplate,
        response: { 200: TemplateResponse },
      },
    },
    (request) => templates.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/templates/:id',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Delete a template',
        description:
          'Deletes the template and returns its last state. Running pods retain their copy.',
        errors: { template_not_found: 'the account has no such template' },
        retry: 'Safe: a repeat returns 404 and changes nothing.',
        params: IdParams,
        response: { 200: TemplateResponse },
      },
    },
    (request) => templates.remove(userOf(request), request.params.id),
  );
}
