/** Composes nodes: the public list of offers, its explanations, and the routes. */
import type { HttpServer } from '#shared/http/server.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import type { Db, Template } from '../../platform/database/tables.ts';
import type { Sweeps } from '../../platform/schedule/retention.ts';
import type { TemplateResponse } from '../templates/template.schemas.ts';
import { createDeploymentEstimates } from './deployment-estimate.ts';
import { registerExecutorRoutes } from './executor.routes.ts';
import { createExecutors } from './executor.service.ts';
import { createHardwareUtilizations } from './hardware-utilization.ts';
import type { LaunchHistory } from './launch-estimate.ts';
import { resetForeignRevisions } from './market.store.ts';
import { createMarketOverview } from './market-overview.ts';
import { createMarketView } from './market-view.ts';
import type { AnnotationsOf } from './node-annotations.ts';
import { deleteOldImageSizes } from './pull-speed.ts';
import { deleteOldDays } from './reliability.service.ts';

export type ExecutorPartsDeps = {
  annotationsOf: AnnotationsOf;
  officialTemplates(): Promise<TemplateResponse[]>;
  /** Past launches and pulls of the template's image on the node. */
  history(executorId: string, template: Template): Promise<LaunchHistory>;
};

export function createExecutorParts({ ports }: CentralDeps, parts: ExecutorPartsDeps) {
  const { db, clock, agents } = ports;
  const { annotationsOf, history, officialTemplates } = parts;
  const view = createMarketView({ db });
  const overview = createMarketOverview({ view, officialTemplates });

  return {
    view,
    overview,

    sweeps: {
      'node-days': (tx: Db) => deleteOldDays(tx, clock.now()),
      'image-sizes': (tx: Db) => deleteOldImageSizes(tx, clock.now()),
    } satisfies Sweeps,

    /** Reads the market into memory. Must complete before the first request is served. */
    async prepare(): Promise<void> {
      await resetForeignRevisions(db);
      await view.offers();
    },

    /** Registers the routes below /api. */
    register(api: HttpServer): void {
      registerExecutorRoutes(api, {
        executors: createExecutors({ db, clock, view, annotationsOf }),
        overview,
        utilization: createHardwareUtilizations({ db, clock, agents }),
        estimates: createDeploymentEstimates({ db, history }),
      });
    },
  };
}
