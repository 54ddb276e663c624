/** Bookmarks of nodes: the nodes that an account wants to find again. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { ExecutorDetailResponse } from '../executors/executor.schemas.ts';
import {
  type ExecutorEntry,
  findExecutors,
  rentalObstacles,
  requireExecutor,
} from '../executors/executor.service.ts';
import { executorResponse } from '../executors/executor-response.ts';
import {
  type AnnotationsOf,
  type PersonalFields,
  personalFields,
} from '../executors/node-annotations.ts';
import type { BookmarkAnswer, BookmarkRequest, BookmarkResponse } from './bookmark.schemas.ts';
import {
  deleteBookmark,
  insertBookmark,
  listBookmarkedNodes,
  listBookmarks,
} from './bookmark.store.ts';

/** Maximum number of bookmarks per account, which limits the list and the query for its nodes. */
const MAX_PER_ACCOUNT = 1_000;

export { deleteBookmarksOf, listBookmarkedNodes } from './bookmark.store.ts';

export type BookmarksDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  annotationsOf: AnnotationsOf;
};

export function createBookmarks({ db, clock, random, annotationsOf }: BookmarksDeps) {
  async function addIn(tx: Db, caller: UserIdentity, nodeId: string): Promise<void> {
    const { accountId } = caller;
    await lockAccount(tx, caller);
    await requireExecutor(tx, nodeId);
    const present = await listBookmarkedNodes(tx, accountId);
    if (present.includes(nodeId)) return;
    if (present.length >= MAX_PER_ACCOUNT) {
      throw new ApiError('bad_request', `An account has at most ${MAX_PER_ACCOUNT} bookmarks`, {
        hint: 'Delete a bookmark that is no longer used.',
      });
    }
    const row = { id: random.uuid(), created_at: clock.now() };
    await insertBookmark(tx, { ...row, account_id: accountId, executor_id: nodeId });
  }

  return {
    /** Lists bookmarks, oldest first, including those of removed nodes. */
    async list({ accountId }: UserIdentity): Promise<BookmarkResponse[]> {
      const bookmarks = await listBookmarks(db, accountId);
      const annotations = await annotationsOf(db, accountId);
      const nodes = await findExecutors(
        db,
        bookmarks.map((bookmark) => bookmark.executor_id),
      );
      const present = new Map(nodes.filter(isShown).map((node) => [node.id, node]));
      const rowOf = (node: ExecutorEntry) =>
        nodeRow(node, clock.now(), (id) => personalFields(annotations, id));
      return bookmarks.map(({ id, executor_id, created_at }) => {
        const node = present.get(executor_id);
        const executor = node === undefined ? null : rowOf(node);
        return { id, executor_id, created_at: naiveUtc(created_at), executor };
      });
    },

    /**
     * Adds or removes a bookmark. Throws `node_not_found` for a removed node, `bad_request` if the account has too many
     * bookmarks.
     */
    async setIn(tx: Db, caller: UserIdentity, body: BookmarkRequest): Promise<BookmarkAnswer> {
      const { executor_id: nodeId, bookmarked = true } = body;
      if (bookmarked) await addIn(tx, caller, nodeId);
      else await deleteBookmark(tx, caller.accountId, nodeId);
      return { success: true, executor_id: nodeId, is_bookmarked: bookmarked };
    },

    /** Removes a bookmark. Has no effect if it does not exist. */
    async remove({ accountId }: UserIdentity, nodeId: string): Promise<BookmarkAnswer> {
      await deleteBookmark(db, accountId, nodeId);
      return { success: true, executor_id: nodeId, is_bookmarked: false };
    },
  };
}

/** Returns true if the node can be shown: a row requires the hardware, which is unknown before the first check. */
function isShown({ state, inventory_json: inventory }: ExecutorEntry): boolean {
  return state !== 'removed' && inventory !== null;
}

/** Returns the list row of a bookmarked node. Unlike nodes in the market list, it may be rented, paused or failed. */
function nodeRow(
  node: ExecutorEntry,
  nowMs: number,
  personal: (nodeId: string) => PersonalFields,
): ExecutorDetailResponse {
  return {
    ...executorResponse(node, { nowMs, summary: false, personal }),
    status: rentalObstacles(node).length === 0 ? 'available' : 'unavailable',
    active: node.state === 'verified',
  };
}
