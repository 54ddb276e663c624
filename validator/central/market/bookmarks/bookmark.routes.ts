/** Routes of bookmarks, below /bookmark and its alias /bookmarks. Error responses are flat. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { userOf } from '../../platform/identity.ts';
import { Bookmark, BookmarkAnswer, BookmarkParams, BookmarkRequest } from './bookmark.schemas.ts';
import { type BookmarksDeps, createBookmarks } from './bookmark.service.ts';

const tags = ['Bookmarks'];
const config = { auth: 'user' } as const;
const response = { 200: BookmarkAnswer };

export function registerBookmarks(api: HttpServer, deps: OnceDeps & BookmarksDeps): void {
  const bookmarks = createBookmarks(deps);
  for (const path of ['/bookmark', '/bookmarks']) {
    api.get(
      path,
      {
        config,
        schema: {
          tags,
          summary: 'List bookmarked nodes',
          description:
            "Returns the account's bookmarks with their nodes. `/bookmark` and `/bookmarks` are the same operation.",
          response: { 200: z.array(Bookmark) },
        },
      },
      (request) => bookmarks.list(userOf(request)),
    );
    api.post(
      path,
      {
        config: { ...config, once: 'bookmark' },
        schema: {
          tags,
          summary: 'Bookmark a node',
          description:
            'Adds or removes a bookmark. Lists of nodes then mark the node, and can be filtered by bookmarks.',
          errors: {
            node_not_found: 'no node has this id',
            bad_request: 'the account has too many bookmarks',
          },
          body: BookmarkRequest,
          response,
        },
      },
      async (request, reply) => {
        const effects = (tx: Db) => bookmarks.setIn(tx, userOf(request), request.body);
        await answerOnce(deps, { request, reply }, { schema: BookmarkAnswer, effects });
        return reply;
      },
    );
    api.delete(
      `${path}/:executor_id`,
      {
        config,
        schema: {
          tags,
          summary: 'Remove a bookmark',
          description: 'Removes the bookmark. Has no effect without a bookmark.',
          retry: 'Safe: a repeat changes nothing.',
          params: BookmarkParams,
          response,
        },
      },
      (request) => bookmarks.remove(userOf(request), request.params.executor_id),
    );
  }
}
