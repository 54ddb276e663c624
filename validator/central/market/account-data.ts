/** Functions that app.ts passes to accounts: what the market stores for an account, and what accounts read of it. */
import type { Db } from '../platform/database/tables.ts';
import { forgetBookmarks } from './bookmarks/bookmark.service.ts';
import { forgetFeedback } from './feedback/feedback.service.ts';
import { forgetMachineRequests } from './machine-requests/machine-request.service.ts';
import { listLiveOf } from './pods/pod.service.ts';
import { forgetChannels } from './support-channels/support-channel.service.ts';
import type { TemplateResponse } from './templates/template.schemas.ts';
import { forgetTemplates, rowFor, visibleTemplate } from './templates/template.service.ts';
import { forgetHotkey } from './validators/validator-account.service.ts';
import { deleteVolumesOf } from './volumes/volume.service.ts';

/** Deletes the market's data of an account, in the transaction that removes the account. */
export async function deleteMarketData(tx: Db, accountId: string, nowMs: number): Promise<void> {
  await forgetBookmarks(tx, accountId);
  await forgetFeedback(tx, accountId);
  await forgetChannels(tx, accountId);
  await forgetHotkey(tx, accountId);
  await forgetTemplates(tx, accountId, nowMs);
  await deleteVolumesOf(tx, accountId, nowMs);
  await forgetMachineRequests(tx, accountId, nowMs);
}

/** Market functions of the ports of accounts. */
export const marketForAccounts = {
  livePodsOf: listLiveOf,
  async templateFor(
    db: Db,
    accountId: string,
    templateId: string,
  ): Promise<TemplateResponse | null> {
    const template = await visibleTemplate(db, accountId, templateId);
    return template === undefined ? null : rowFor(accountId, template);
  },
};
