/** Nodes that an account wants to find again (contract 8). */
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
  deleteBookmarksOf,
  insertBookmark,
  listBookmarkedNodes,
  listBookmarks,
} from './bookmark.store.ts';

/** Few enough for one list, and for one statement that has them all. */
const MAX_PER_ACCOUNT = 1_000;

export type BookmarksDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  annotationsOf: AnnotationsOf;
};
export type Bookmarks = ReturnType<typeof createBookmarks>;

/** Rules of bookmarks. */
export function createBookmarks({ db, clock, random, annotationsOf }: BookmarksDeps) {
  async function addIn(tx: Db, caller: UserIdentity, nodeId: string): Promise<void> {
    const { accountId } = caller;
    await lockAccount(tx, caller);
    await requireExecutor(tx, nodeId);
    const present = await listBookmarkedNodes(tx, accountId);
    if (present.includes(nodeId)) return;
    if (present.length >= MAX_PER_ACCOUNT) {
      throw new ApiError('bad_request', `An account has at most ${MAX_PER_ACCOUNT} bookmarks`, {
        hint: 'Delete one that is no longer used.',
      });
    }
    const row = { id: random.uuid(), created_at: clock.now() };
    await insertBookmark(tx, { ...row, account_id: accountId, executor_id: nodeId });
  }

  return {
    /** Oldest first; those of nodes that have left stay. */
    async list({ accountId }: UserIdentity): Promise<BookmarkResponse[]> {
      const bookmarks = await listBookmarks(db, accountId);
      const notes = await annotationsOf(db, accountId);
      const nodes = await findExecutors(
        db,
        bookmarks.map((bookmark) => bookmark.executor_id),
      );
      const present = new Map(
        nodes.filter(({ state }) => state !== 'removed').map((node) => [node.id, node]),
      );
      const rowOf = (node: ExecutorEntry) =>
        nodeRow(node, clock.now(), (id) => personalFields(notes, id));
      return bookmarks.map(({ id, executor_id, created_at }) => {
        const node = present.get(executor_id);
        const executor = node === undefined ? null : rowOf(node);
        return { id, executor_id, created_at: naiveUtc(created_at), executor };
      });
    },

    /** In `tx`. Throws `node_not_found` for a node that has left, `bad_request` with too many. */
    async setIn(tx: Db, caller: UserIdentity, body: BookmarkRequest): Promise<BookmarkAnswer> {
      const { executor_id: nodeId, bookmarked = true } = body;
      if (bookmarked) await addIn(tx, caller, nodeId);
      else await deleteBookmark(tx, caller.accountId, nodeId);
      return { success: true, executor_id: nodeId, is_bookmarked: bookmarked };
    },

    /** Also where there is none. */
    async remove({ accountId }: UserIdentity, nodeId: string): Promise<BookmarkAnswer> {
      await deleteBookmark(db, accountId, nodeId);
      return { success: true, executor_id: nodeId, is_bookmarked: false };
    },
  };
}

/** Ids of an account's bookmarked nodes, in no order. */
export function bookmarkedNodes(db: Db, accountId: string): Promise<string[]> {
  return listBookmarkedNodes(db, accountId);
}

/** Removes those of an account that is being deleted. */
export function forgetBookmarks(tx: Db, accountId: string): Promise<void> {
  return deleteBookmarksOf(tx, accountId);
}

/** Unlike those on the market a bookmarked node may be rented, paused or failed just now. */
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
