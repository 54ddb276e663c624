/** GET /pods/{id}/metrics. The same route of a node is in the provider portal. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Database } from '../../platform/database/tables.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import { requireAnyOwnPod } from '../pods/pod-access.ts';
import { HistoryQuery, PodMetricHistory } from './metric-history.schemas.ts';
import type { MetricHistories } from './metric-history.service.ts';

export function registerMetricHistory(
  api: HttpServer,
  { db, histories }: { db: Database; histories: MetricHistories },
): void {
  api.get(
    '/pods/:id/metrics',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Pods'],
        params: IdParams,
        querystring: HistoryQuery,
        response: { 200: PodMetricHistory },
      },
    },
    async (request) => {
      const { accountId } = userOf(request);
      const pod = await requireAnyOwnPod(db, accountId, request.params.id);
      return histories.ofPod(pod, request.query);
    },
  );
}
