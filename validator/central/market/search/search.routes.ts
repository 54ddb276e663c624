/** GET /users/me/search. */
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import { SearchQuery, SearchResults } from './search.schemas.ts';
import { createSearch, type SearchDeps } from './search.service.ts';

export function registerSearch(api: HttpServer, deps: SearchDeps): void {
  const search = createSearch(deps);
  api.get(
    '/users/me/search',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Users'],
        summary: 'Search by id, name or address',
        description:
          "Returns the account's pods, volumes and templates, official templates, and offered nodes that match. Lists are empty if nothing matches.",
        querystring: SearchQuery,
        response: { 200: SearchResults },
      },
    },
    (request) => search(userOf(request).accountId, request.query),
  );
}
