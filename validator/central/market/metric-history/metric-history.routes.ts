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
        summary: 'Read the history of a pod',
        description:
          'Returns the figures of each interval for GPUs, processors, memory, network and disk. Intervals without a measurement are null, never interpolated. A pod that has ended keeps its history for 30 days.',
        errors: {
          pod_not_found: 'the account has no such pod',
          validation_error:
            '`from` is not before `to` or is in the future, or the resolution is unknown',
        },
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
