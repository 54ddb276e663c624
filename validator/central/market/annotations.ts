/** An account's annotations of nodes, read from bookmarks and machine requests. */

import type { Db } from '../platform/database/tables.ts';
import { bookmarkedNodes } from './bookmarks/bookmark.service.ts';
import { NO_ANNOTATIONS, type NodeAnnotations } from './executors/node-annotations.ts';
import { answers } from './machine-requests/machine-request.match.ts';
import { ownMachineRequest, requestsByNode } from './machine-requests/machine-request.service.ts';

export async function annotationsOf(
  db: Db,
  accountId: string | null,
  requestId?: string,
): Promise<NodeAnnotations> {
  if (accountId === null) return NO_ANNOTATIONS;
  const request =
    requestId === undefined ? null : await ownMachineRequest(db, accountId, requestId);
  return {
    bookmarked: new Set(await bookmarkedNodes(db, accountId)),
    requestByNode: await requestsByNode(db, accountId),
    request:
      request === null ? null : { id: request.id, isAnsweredBy: (node) => answers(request, node) },
  };
}
