/** What an account has noted about nodes, out of the concepts that keep it. */

import type { Db } from '../platform/database/tables.ts';
import { bookmarkedNodes } from './bookmarks/bookmark.service.ts';
import { NO_NOTES, type NodeNotes } from './executors/node-notes.ts';
import { answers } from './machine-requests/machine-request.match.ts';
import { ownMachineRequest, requestsByNode } from './machine-requests/machine-request.service.ts';

/** For whoever lists nodes (`NotesOf` in executors/node-notes.ts). */
export async function notesOf(
  db: Db,
  accountId: string | null,
  requestId?: string,
): Promise<NodeNotes> {
  if (accountId === null) return NO_NOTES;
  const request =
    requestId === undefined ? null : await ownMachineRequest(db, accountId, requestId);
  return {
    bookmarked: new Set(await bookmarkedNodes(db, accountId)),
    requestByNode: await requestsByNode(db, accountId),
    asked:
      request === null ? null : { id: request.id, isAnsweredBy: (node) => answers(request, node) },
  };
}
