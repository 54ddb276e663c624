/** Composes the history of metrics: the collection from agents, its routes and its retention. Starts no job. */
import type { HttpServer } from '#shared/http/server.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Sweeps } from '../../platform/schedule/retention.ts';
import { createCollectionJob } from './collection.job.ts';
import { registerMetricHistory } from './metric-history.routes.ts';
import { createMetricHistories } from './metric-history.service.ts';
import { sweepHistory } from './metric-history.store.ts';

const DAY_MS = 86_400_000;
const RETAINED_DAYS = 30;

export function createMetricHistoryParts({ ports, options }: CentralDeps) {
  const { db, clock } = ports;
  const job = createCollectionJob(ports);
  const histories = createMetricHistories(ports);

  return {
    histories,

    /** Registers the routes below /api. */
    register(api: HttpServer): void {
      registerMetricHistory(api, { db, histories });
    },

    sweeps: {
      'metric-history': (tx: Db) => {
        const nowMs = clock.now();
        return sweepHistory(tx, { day: Math.floor(nowMs / DAY_MS) - RETAINED_DAYS, nowMs });
      },
    } satisfies Sweeps,

    /** Collects from every executor that is due. Tests call it instead of `start`. */
    collectOnce: job.runOnce,

    start: (): { stop(): Promise<void> } =>
      options.collectsMetrics === false ? { stop: async () => undefined } : job.start(),
  };
}
