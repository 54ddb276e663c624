/**
 * Functions that app.ts passes to the accounts module: the deletion of an account's data in the market, and reads of
 * its pods and templates.
 */
import type { Db } from '../platform/database/tables.ts';
import { deleteBookmarksOf } from './bookmarks/bookmark.service.ts';
import { clearFeedbackOf } from './feedback/feedback.service.ts';
import { clearMachineRequestsOf } from './machine-requests/machine-request.service.ts';
import { deleteHistoryOf } from './metric-history/metric-history.service.ts';
import { listLiveOf } from './pods/pod.service.ts';
import { clearChannelsOf } from './support-channels/support-channel.service.ts';
import type { TemplateResponse } from './templates/template.schemas.ts';
import { forgetTemplates, rowFor, visibleTemplate } from './templates/template.service.ts';
import { deleteHotkey } from './validators/validator-account.service.ts';
import { deleteVolumesOf } from './volumes/volume.service.ts';

/** Deletes the market's data of an account, in the transaction that removes the account. */
export async function deleteMarketData(tx: Db, accountId: string, nowMs: number): Promise<void> {
  await deleteBookmarksOf(tx, accountId);
  await deleteHistoryOf(tx, accountId);
  await clearFeedbackOf(tx, accountId);
  await clearChannelsOf(tx, accountId);
  await deleteHotkey(tx, accountId);
  await forgetTemplates(tx, accountId, nowMs);
  await deleteVolumesOf(tx, accountId, nowMs);
  await clearMachineRequestsOf(tx, accountId, nowMs);
}

/** Functions of the market that the accounts module requires through its ports. */
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
