/** Templates: official, public and an account's own (specification, Resources; contract 8). */
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import type { UserIdentity } from '../auth/identity.ts';
import type { Database, Db, Template } from '../db/tables.ts';
import { changedTemplate, templateContent, toTemplateRow } from './template.row.ts';
import type { CreateTemplate, TemplateResponse, UpdateTemplate } from './template.schemas.ts';
import {
  countTemplatesSince,
  findTemplate,
  insertTemplate,
  listTemplates,
  updateTemplate,
  useTemplate,
} from './template.store.ts';

export { commandWords, toTemplateRow } from './template.row.ts';

const MAX_NEW_PER_HOUR = 20;
const HOUR_MS = 3_600_000;

export type Templates = ReturnType<typeof createTemplates>;

/** Rules of templates. */
export function createTemplates(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock, random } = deps;

  async function ownTemplate(handle: Db, caller: UserIdentity, id: string): Promise<Template> {
    const template = await findTemplate(handle, id);
    if (template === undefined || template.account_id !== caller.accountId) throw notFound();
    return template;
  }

  return {
    async list(accountId: string | null): Promise<TemplateResponse[]> {
      return (await listTemplates(db, accountId)).map(toTemplateRow);
    },

    async get(accountId: string | null, id: string): Promise<TemplateResponse> {
      const template = await visibleTemplate(db, accountId, id);
      if (template === undefined) throw notFound();
      return toTemplateRow(template);
    },

    create(caller: UserIdentity, body: CreateTemplate): Promise<TemplateResponse> {
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
      return db.transaction().execute(async (tx) => {
        const made = await countTemplatesSince(tx, caller.accountId, nowMs - HOUR_MS);
        if (made >= MAX_NEW_PER_HOUR) {
          const message = `An account makes at most ${MAX_NEW_PER_HOUR} templates an hour`;
          throw new ApiError('rate_limited', message, { headers: { 'Retry-After': '60' } });
        }
        await insertTemplate(tx, template);
        return toTemplateRow(template);
      });
    },

    update(caller: UserIdentity, id: string, body: UpdateTemplate): Promise<TemplateResponse> {
      return db.transaction().execute(async (tx) => {
        const stored = await ownTemplate(tx, caller, id);
        const content = templateContent(changedTemplate(stored, body));
        const changes = { ...content, updated_at: clock.now() };
        await updateTemplate(tx, id, changes);
        return toTemplateRow({ ...stored, ...changes });
      });
    },

    /** Pods rented from it keep running: each has its own copy. */
    remove(caller: UserIdentity, id: string): Promise<TemplateResponse> {
      return db.transaction().execute(async (tx) => {
        const stored = await ownTemplate(tx, caller, id);
        await updateTemplate(tx, id, { deleted_at: clock.now() });
        return toTemplateRow(stored);
      });
    },
  };
}

/** The template if this account, or anybody, may see it. */
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

/**
 * The template to rent with: the stated one, else the account's default. Throws `template_not_found` for one
 * that the account cannot see, `template_invalid` for none at all or one that cannot be used again.
 */
export async function templateForRent(
  tx: Db,
  accountId: string,
  templateId: string | null,
  defaultTemplateId: string | null,
): Promise<Template> {
  const id = templateId ?? defaultTemplateId;
  if (id === null) {
    throw new ApiError('template_invalid', 'No template is given and the account has no default', {
      hint: 'Send template_id; GET /templates lists them.',
    });
  }
  const template = await visibleTemplate(tx, accountId, id);
  if (template === undefined) throw notFound();
  if (isForOneUse(template) && template.used_at !== null) throw usedUp();
  return template;
}

/** Notes the use of a one-time or temporary template; in the transaction that rents. */
export async function markTemplateRented(tx: Db, template: Template, nowMs: number): Promise<void> {
  if (isForOneUse(template) && !(await useTemplate(tx, template.id, nowMs))) throw usedUp();
}

/** Deletes a one-time template once its pod is removed; leaves any other. */
export async function retireTemplate(tx: Db, templateId: string, nowMs: number): Promise<void> {
  const template = await findTemplate(tx, templateId);
  if (template === undefined || template.one_time_template === 0) return;
  await updateTemplate(tx, templateId, { deleted_at: nowMs });
}

function isForOneUse(template: Template): boolean {
  return template.one_time_template === 1 || template.is_temporary === 1;
}

function notFound(): ApiError {
  return new ApiError('template_not_found', 'Template not found');
}

function usedUp(): ApiError {
  return new ApiError('template_invalid', 'This template was for one use and has been used', {
    hint: 'Create a new template or choose another one.',
  });
}
