/** Composes templates: their routes, and the official templates. */
import type { HttpServer } from '#shared/http/server.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import type { OnceDeps } from '../../platform/idempotency/once.ts';
import { ensureOfficialTemplates } from './official-templates.ts';
import type { CheckRegistry } from './registry-check.ts';
import { registerTemplateRoutes } from './template.routes.ts';
import { createTemplates } from './template.service.ts';

export function createTemplateParts(
  { ports: { db, clock, random } }: CentralDeps,
  checkRegistry: CheckRegistry,
) {
  const templates = createTemplates({ db, clock, random, checkRegistry });
  return {
    listOfficial: () => templates.list(null, { owner: 'official' }),

    /** Stores the official templates. Must complete before the first request is served. */
    prepare: () => ensureOfficialTemplates(db, clock),

    /** Registers the routes below /api. */
    register: (api: HttpServer, once: OnceDeps) =>
      registerTemplateRoutes(api, { ...once, templates }),
  };
}
