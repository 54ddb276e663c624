/** Use of templates by rentals and by changes of pods. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import { requireCredentialOf } from '../../accounts/registry-logins/docker-credential.service.ts';
import type { Db, Template } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { type TemplateResponse, UpdateTemplate } from './template.schemas.ts';
import { addTemplate, forAccount, templateNotFound, visibleTemplate } from './template.service.ts';
import { findTemplate, updateTemplate, useTemplate } from './template.store.ts';
import {
  changedTemplate,
  checkTemplatePaths,
  templateContent,
  templateResponse,
} from './template-content.ts';

/**
 * Returns the requested template, or the account's default if the request names none. Throws `template_not_found` if
 * the account may not use the template, and `template_invalid` if there is no template or a one-time template was used
 * before.
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
  if (template === undefined) throw templateNotFound();
  if (isForOneUse(template) && template.used_at !== null) throw usedUp();
  const own = forAccount(accountId, template);
  await requireCredentialOf(tx, accountId, own.docker_credential_id);
  return own;
}

/**
 * Returns the template for an edited pod. The account's own template is changed in place; any other template (of
 * another account, official or deleted) is copied for the account. `snapshot` is the template as the pod runs it.
 * Throws `template_invalid`, or `rate_limited` if the account has too many templates.
 */
export async function templateForEdit(
  tx: Db,
  deps: { clock: Clock; random: Random },
  accountId: string,
  used: { templateId: string; snapshot: TemplateResponse },
  changes: UpdateTemplate,
): Promise<Template> {
  const nowMs = deps.clock.now();
  checkTemplatePaths(changes);
  // Locked first, in the same order as in a rental (`lockRow`).
  await lockAccount(tx, { accountId });
  const stored = await lockOwn(tx, accountId, used.templateId);
  if (stored !== undefined) {
    const content = templateContent(changedTemplate(templateResponse(stored), changes));
    await requireCredentialOf(tx, accountId, content.docker_credential_id);
    const changed = { ...stored, ...content, updated_at: nowMs };
    await updateTemplate(tx, stored.id, { ...content, updated_at: nowMs });
    return changed;
  }
  // The copy is based on the snapshot, because the pod does not run later changes by the template's owner.
  const flags = { is_private: true, one_time_template: false, is_temporary: false };
  const content = templateContent(changedTemplate({ ...used.snapshot, ...flags }, changes));
  await requireCredentialOf(tx, accountId, content.docker_credential_id);
  const copy: Template = {
    ...content,
    id: deps.random.uuid(),
    account_id: accountId,
    used_at: nowMs,
    deleted_at: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
  await addTemplate(tx, accountId, copy);
  return copy;
}

/** The account's own template if it changed after `sinceMs`; otherwise null. */
export async function ownTemplateChangedSince(
  tx: Db,
  accountId: string,
  id: string,
  sinceMs: number,
): Promise<Template | null> {
  const template = await findTemplate(tx, id);
  if (template === undefined || template.account_id !== accountId) return null;
  return template.updated_at > sinceMs ? template : null;
}

async function lockOwn(tx: Db, accountId: string, id: string): Promise<Template | undefined> {
  if ((await findTemplate(tx, id))?.account_id !== accountId) return undefined;
  await lockRow(tx, 'templates', id);
  return findTemplate(tx, id);
}

/**
 * Reverts a failed edit of the account's own template, unless it was changed again since `editedMs`. `before` is the
 * template as the pod ran it.
 */
export async function revertTemplateEdit(
  tx: Db,
  accountId: string,
  before: TemplateResponse,
  { editedMs, nowMs }: { editedMs: number | null; nowMs: number },
): Promise<void> {
  const stored = await lockOwn(tx, accountId, before.id);
  if (stored === undefined || stored.updated_at !== editedMs) return;
  const content = templateContent(changedTemplate(before, UpdateTemplate.parse({})));
  await updateTemplate(tx, before.id, { ...content, updated_at: nowMs });
}

/** Marks a one-time template as unused after a failed change to it. */
export async function unmarkTemplateRented(tx: Db, templateId: string): Promise<void> {
  const template = await findTemplate(tx, templateId);
  if (template !== undefined && isForOneUse(template)) {
    await updateTemplate(tx, templateId, { used_at: null });
  }
}

/** Marks a one-time or temporary template as used. Must run in the transaction of the rental. */
export async function markTemplateRented(tx: Db, template: Template, nowMs: number): Promise<void> {
  if (isForOneUse(template) && !(await useTemplate(tx, template.id, nowMs))) throw usedUp();
}

/** Deletes a one-time template after its pod was removed; other templates are unchanged. */
export async function retireTemplate(tx: Db, templateId: string, nowMs: number): Promise<void> {
  const template = await findTemplate(tx, templateId);
  if (template === undefined || template.one_time_template === 0) return;
  await updateTemplate(tx, templateId, { deleted_at: nowMs });
}

function isForOneUse(template: Template): boolean {
  return template.one_time_template === 1 || template.is_temporary === 1;
}

function usedUp(): ApiError {
  return new ApiError('template_invalid', 'This template was for one use and has been used', {
    hint: 'Create a new template or choose another one.',
  });
}
