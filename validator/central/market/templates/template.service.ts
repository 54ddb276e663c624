/** Templates: official templates, public templates and an account's own templates. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import { requireCredentialOf } from '../../accounts/registry-logins/docker-credential.service.ts';
import type { Database, Db, Template } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { CheckRegistry } from './registry-check.ts';
import type { CreateTemplate, TemplateResponse, UpdateTemplate } from './template.schemas.ts';
import {
  countTemplatesSince,
  deleteTemplatesOf,
  findTemplate,
  insertTemplate,
  listTemplates,
  type TemplateSearch,
  updateTemplate,
} from './template.store.ts';
import {
  changedTemplate,
  checkTemplatePaths,
  templateContent,
  templateResponse,
} from './template-content.ts';

export { commandWords, templateContent, templateResponse } from './template-content.ts';

const MAX_NEW_PER_HOUR = 20;
const HOUR_MS = 3_600_000;

export type Templates = ReturnType<typeof createTemplates>;

export function createTemplates(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  checkRegistry: CheckRegistry;
}) {
  const { db, clock, random, checkRegistry } = deps;

  async function ownTemplate(handle: Db, caller: UserIdentity, id: string): Promise<Template> {
    const template = await findTemplate(handle, id);
    if (template === undefined || template.account_id !== caller.accountId)
      throw templateNotFound();
    return template;
  }

  return {
    async list(accountId: string | null, search: TemplateSearch): Promise<TemplateResponse[]> {
      const rows = await listTemplates(db, accountId, search);
      return rows.map((template) => rowFor(accountId, template));
    },

    async get(accountId: string | null, id: string): Promise<TemplateResponse> {
      const template = await visibleTemplate(db, accountId, id);
      if (template === undefined) throw templateNotFound();
      return rowFor(accountId, template);
    },

    /**
     * Checks the paths and the registry, which may take seconds, and returns the creation, to be called in a
     * transaction.
     */
    async creation(
      caller: UserIdentity,
      body: CreateTemplate,
    ): Promise<(tx: Db) => Promise<TemplateResponse>> {
      checkTemplatePaths(body);
      await checkRegistry(body.docker_image);
      const nowMs = clock.now();
      const template: Template = {
        ...templateContent(body),
        id: random.uuid(),
        account_id: caller.accountId,
        used_at: null,
        deleted_at: null,
        created_at: nowMs,
        updated_at: nowMs,
      };
      return async (tx) => {
        await requireCredentialOf(tx, caller.accountId, template.docker_credential_id);
        await addTemplate(tx, caller.accountId, template);
        return templateResponse(template);
      };
    },

    /**
     * Changes a template. The owner's pods run the new content after their next reboot; pods of other accounts keep
     * their content.
     */
    async update(
      caller: UserIdentity,
      id: string,
      body: UpdateTemplate,
    ): Promise<TemplateResponse> {
      checkTemplatePaths(body);
      await checkRegistry(body.docker_image);
      return db.transaction().execute(async (tx) => {
        await lockRow(tx, 'templates', id);
        const stored = await ownTemplate(tx, caller, id);
        const content = templateContent(changedTemplate(templateResponse(stored), body));
        // An unchanged credential may have been deleted in the meantime; the other members can still change.
        if (content.docker_credential_id !== stored.docker_credential_id) {
          await requireCredentialOf(tx, caller.accountId, content.docker_credential_id);
        }
        const changes = { ...content, updated_at: clock.now() };
        await updateTemplate(tx, id, changes);
        return templateResponse({ ...stored, ...changes });
      });
    },

    /** Deletes a template. Pods that were rented with it keep running, because each pod has its own copy. */
    remove(caller: UserIdentity, id: string): Promise<TemplateResponse> {
      return db.transaction().execute(async (tx) => {
        await lockRow(tx, 'templates', id);
        const stored = await ownTemplate(tx, caller, id);
        await updateTemplate(tx, id, { deleted_at: clock.now() });
        return templateResponse(stored);
      });
    },
  };
}

/** Finds a template that is public or belongs to the account; otherwise returns undefined. */
export async function visibleTemplate(
  db: Db,
  accountId: string | null,
  id: string,
): Promise<Template | undefined> {
  const template = await findTemplate(db, id);
  if (template === undefined) return undefined;
  const own = accountId !== null && template.account_id === accountId;
  return own || template.is_private === 0 ? template : undefined;
}

/** Removes the registry credential unless the template belongs to the account. */
export function forAccount(accountId: string | null, template: Template): Template {
  const isOwn = accountId !== null && template.account_id === accountId;
  return isOwn ? template : { ...template, docker_credential_id: null };
}

export function rowFor(accountId: string | null, template: Template): TemplateResponse {
  return templateResponse(forAccount(accountId, template));
}

/** Stores a new template. Throws `rate_limited` if the account has created too many templates within an hour. */
export async function addTemplate(tx: Db, accountId: string, template: Template): Promise<void> {
  await lockAccount(tx, { accountId });
  const sinceMs = template.created_at - HOUR_MS;
  if ((await countTemplatesSince(tx, accountId, sinceMs)) >= MAX_NEW_PER_HOUR) {
    const message = `An account can create at most ${MAX_NEW_PER_HOUR} templates per hour`;
    throw new ApiError('rate_limited', message, { headers: { 'Retry-After': '60' } });
  }
  await insertTemplate(tx, template);
}

export function templateNotFound(): ApiError {
  return new ApiError('template_not_found', 'Template not found');
}

/** Deletes the templates of an account that is being deleted. */
export function forgetTemplates(tx: Db, accountId: string, nowMs: number): Promise<void> {
  return deleteTemplatesOf(tx, accountId, nowMs);
}
