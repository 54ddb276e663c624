/** Data of one account in all parts of the market: annotations of nodes, pods and templates, and their deletion. */
import type { Db } from '../platform/database/tables.ts';
import { deleteBookmarksOf, listBookmarkedNodes } from './bookmarks/bookmark.service.ts';
import { NO_ANNOTATIONS, type NodeAnnotations } from './executors/node-annotations.ts';
import { clearFeedbackOf } from './feedback/feedback.service.ts';
import {
  clearMachineRequestsOf,
  ownMachineRequest,
  requestsByNode,
} from './machine-requests/machine-request.service.ts';
import { matchesRequest } from './machine-requests/request-match.ts';
import { deleteHistoryOf } from './metric-history/metric-history.service.ts';
import { clearReportsOf } from './pod-reports/report.service.ts';
import { listLiveOf } from './pods/pod.service.ts';
import { clearChannelsOf } from './support-channels/support-channel.service.ts';
import type { TemplateResponse } from './templates/template.schemas.ts';
import { forgetTemplates, rowFor, visibleTemplate } from './templates/template.service.ts';
import { deleteHotkey } from './validators/validator-account.service.ts';
import { deleteVolumesOf } from './volumes/volume.service.ts';

/** Reads the nodes that an account has bookmarked, and the nodes that were added for its machine requests. */
export async function annotationsOf(
  db: Db,
  accountId: string | null,
  requestId?: string,
): Promise<NodeAnnotations> {
  if (accountId === null) return NO_ANNOTATIONS;
  const request =
    requestId === undefined ? null : await ownMachineRequest(db, accountId, requestId);
  return {
    bookmarked: new Set(await listBookmarkedNodes(db, accountId)),
    requestByNode: await requestsByNode(db, accountId),
    request:
      request === null
        ? null
        : { id: request.id, isAnsweredBy: (node) => matchesRequest(request, node) },
  };
}

/** Deletes the market's data of an account, in the transaction that removes the account. */
export async function deleteMarketData(tx: Db, accountId: string, nowMs: number): Promise<void> {
  await deleteBookmarksOf(tx, accountId);
  await deleteHistoryOf(tx, accountId);
  await clearFeedbackOf(tx, accountId);
  await clearReportsOf(tx, accountId, nowMs);
  await clearChannelsOf(tx, accountId);
  await deleteHotkey(tx, accountId);
  await forgetTemplates(tx, accountId, nowMs);
  await deleteVolumesOf(tx, accountId, nowMs);
  await clearMachineRequestsOf(tx, accountId, nowMs);
}

/** Functions of the market that the accounts module receives through its ports. */
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
