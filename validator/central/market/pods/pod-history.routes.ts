/** GET /pods/history (contract 5.2). */
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import { PodHistoryQuery, PodHistoryResponse } from './pod-history.schemas.ts';
import type { PodHistory } from './pod-history.service.ts';

/** Registers it. */
export function registerPodHistoryRoutes(api: HttpServer, history: PodHistory): void {
  api.get(
    '/pods/history',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Pods'],
        querystring: PodHistoryQuery,
        response: { 200: PodHistoryResponse },
      },
    },
    (request) => history.list(userOf(request), request.query),
  );
}
