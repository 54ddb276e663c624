/** The market's half of the central API put together: nodes, rentals, pods, providers, validators. */
import type { HttpServer } from '#shared/http/server.ts';
import { startLoop } from '#shared/loop.ts';
import { createDeploymentEstimates } from './executors/deployment-estimate.ts';
import { registerExecutorRoutes } from './executors/executor.routes.ts';
import { createExecutors } from './executors/executor.service.ts';
import { createHardwareUtilizations } from './executors/hardware-utilization.ts';
import { createMarketOverview } from './executors/market-overview.ts';
import { registerPodRoutes } from './pods/pod.routes.ts';
import { createPods } from './pods/pod.service.ts';
import { createPodClearance } from './pods/pod-clearance.ts';
import { registerPodLogRoutes } from './pods/pod-logs.routes.ts';
import { createPodLogs } from './pods/pod-logs.ts';
import { createPodSyncJob } from './pods/pod-sync.job.ts';
import type { CentralDeps } from './ports.ts';
import { createNodes } from './providers/node.service.ts';
import { registerPortalRoutes, registerSharedConfig } from './providers/portal.routes.ts';
import { createProviders } from './providers/provider.service.ts';
import { createIdempotency } from './rentals/idempotency.ts';
import { registerRentalRoutes } from './rentals/rental.routes.ts';
import { createTemplates } from './templates/template.service.ts';
import { registerValidatorRoutes } from './validators/validator.routes.ts';
import { createValidators } from './validators/validator.service.ts';

/** How often idempotency keys older than their window are removed. */
const SWEEP_INTERVAL_MS = 600_000;

/** Nothing runs and nothing is registered yet. */
export function createMarket(deps: CentralDeps) {
  const { db, clock, random, log, agents } = deps.ports;
  const sync = createPodSyncJob({ db, clock, random, log, agents });
  const { wake } = sync;
  const idempotency = createIdempotency({ db, clock, bootId: random.uuid() });
  const pods = createPods({ db, clock, random, wake });
  const clearance = createPodClearance({ db, clock, random, wake });

  return {
    /** Routes below /api. */
    registerApi(api: HttpServer): void {
      const executors = createExecutors({ db, clock });
      const templates = createTemplates({ db, clock, random });
      const overview = createMarketOverview({
        db,
        officialTemplates: async () =>
          (await templates.list(null)).filter((template) => template.user_id === null),
      });
      const utilization = createHardwareUtilizations({ db, clock, agents });
      const estimates = createDeploymentEstimates({ db, launchTimes: pods.launchTimes });
      registerExecutorRoutes(api, { executors, overview, utilization, estimates });
      registerRentalRoutes(api, { clock, random, idempotency, pods, wake });
      registerPodRoutes(api, pods);
      registerPodLogRoutes(api, {
        logs: createPodLogs({ db, clock, agents, stopping: deps.stopping }),
        credentialStands: (request) =>
          deps.users.identify(request).then(
            () => true,
            () => false,
          ),
      });
      registerValidatorRoutes(api, createValidators({ db, clock, agents }));
      registerSharedConfig(api);
    },

    /** Routes below /portal. */
    registerPortal(portal: HttpServer): void {
      const { sessions } = deps;
      const providers = createProviders({ db, clock, random, sessions });
      registerPortalRoutes(portal, { clock, providers, nodes: createNodes({ db, clock, random }) });
      registerSharedConfig(portal);
    },

    /** Routes at the origin. */
    registerOrigin: registerSharedConfig,

    /** To be awaited before requests are taken. */
    dropStaleClaims: () => idempotency.dropStale(),

    /** One pass of the pod sync over everything due: tests call it instead of `startJobs`. */
    syncOnce: () => sync.runOnce(),

    /** Removes everybody's pods, and tells how many are left. */
    clearance,

    startJobs(): { stop(): Promise<void> } {
      sync.start();
      const sweep = startLoop({
        clock,
        intervalMs: SWEEP_INTERVAL_MS,
        run: () => idempotency.sweep(),
        onError: (error) => log.error({ err: error }, 'sweeping idempotency keys failed'),
      });
      return {
        async stop() {
          await Promise.all([sync.stop(), sweep.stop()]);
        },
      };
    },
  };
}
