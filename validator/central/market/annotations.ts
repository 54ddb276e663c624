/** An account's annotations of nodes, read from bookmarks and machine requests. */

import type { Db } from '../platform/database/tables.ts';
import { listBookmarkedNodes } from './bookmarks/bookmark.service.ts';
import { NO_ANNOTATIONS, type NodeAnnotations } from './executors/node-annotations.ts';
import { ownMachineRequest, requestsByNode } from './machine-requests/machine-request.service.ts';
import { matchesRequest } from './machine-requests/request-match.ts';

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
