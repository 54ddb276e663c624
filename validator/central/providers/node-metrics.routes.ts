/** GET /executors/{id}/metrics: the history of a node's metrics, for its provider. */
import type { HttpServer } from '#shared/http/server.ts';
import { requireOwnNode } from '../market/executors/executor.service.ts';
import {
  HistoryQuery,
  NodeMetricHistory,
} from '../market/metric-history/metric-history.schemas.ts';
import type { MetricHistories } from '../market/metric-history/metric-history.service.ts';
import type { Database } from '../platform/database/tables.ts';
import { providerOf } from '../platform/identity.ts';
import { type PortalAnswers, portalAnswer } from '../platform/portal-answer.ts';
import { NodeParams } from './node.schemas.ts';

export function registerNodeMetrics(
  portal: HttpServer,
  deps: { db: Database; answers: PortalAnswers; histories: MetricHistories },
): void {
  const { db, answers, histories } = deps;
  portal.get(
    '/executors/:id/metrics',
    {
      config: { auth: 'portal' },
      schema: {
        tags: ['Portal'],
        summary: 'Read the history of a node',
        description:
          'Returns the measurements of GPUs, processors, memory, network and disk in each interval, including intervals in which no pod ran. Intervals without a measurement are null and are not interpolated. Measurements of single pods are available only to the renters of the pods.',
        errors: {
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
          validation_error:
            '`from` is not before `to`, `from` is in the future, or the resolution is unknown',
        },
        params: NodeParams,
        querystring: HistoryQuery,
        response: { 200: portalAnswer(NodeMetricHistory) },
      },
    },
    async (request) => {
      const node = await requireOwnNode(db, providerOf(request), request.params.id);
      return answers.one(await histories.ofNode(node, request.query));
    },
  );
}
