/** Volumes put together: their routes, the passes over agents, clean-up. */

import type { HttpServer } from '#shared/http/server.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import type { OnceDeps } from '../../platform/idempotency/once.ts';
import type { Processes } from '../../platform/processes.ts';
import { registerVolumeRoutes } from './volume.routes.ts';
import { createVolumes } from './volume.service.ts';
import { createVolumeCleanup } from './volume-cleanup.ts';
import { createVolumeRepositories } from './volume-repository.ts';
import { createVolumeSync } from './volume-sync.ts';

const DEFAULT_LIMIT_BYTES = 20 * 1024 ** 3;
const TEND_INTERVAL_MS = 60_000;

/** Nothing runs and nothing is registered yet. Without a storage none can be made, and those there are are shown. */
export function createVolumeWork(
  { ports, options }: CentralDeps,
  { processes, wake }: { processes: Processes; wake(executorId: string): void },
) {
  const { db, clock, random, log, secret } = ports;
  const { backupStorage: storage = null, pruneBackups: prune = null } = ports;
  const repositories = createVolumeRepositories({ random, secret, storage });
  const shared = { db, clock, random, log, repositories };
  const sync = createVolumeSync(shared);
  const cleanUp =
    storage === null
      ? async () => undefined
      : createVolumeCleanup({ ...shared, processes, storage, prune });
  let loop: { stop(): Promise<void> } | null = null;

  async function tend(): Promise<void> {
    await sync.giveUpSilent();
    await cleanUp();
  }

  return {
    /** What agents are asked in the turns of the pod sync. */
    sync,

    /** Routes below /api. */
    register(api: HttpServer, once: OnceDeps): void {
      const limitBytes = options.volumeLimitBytes ?? DEFAULT_LIMIT_BYTES;
      const volumes = createVolumes({ ...shared, wake, limitBytes });
      registerVolumeRoutes(api, { ...once, volumes });
    },

    /** One look at what is given up, and one clean-up: tests call it instead of `start`. */
    runOnce: tend,

    start(): void {
      loop ??= startLoop({
        ...{ clock, intervalMs: TEND_INTERVAL_MS, run: tend },
        onError: (error) => log.error({ err: error }, `volumes: ${messageOf(error)}`),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}
