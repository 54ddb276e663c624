/** Composes volumes: their routes, their part of the pod sync, and the clean-up. */
import type { HttpServer } from '#shared/http/server.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { OnceDeps } from '../../platform/idempotency/once.ts';
import type { Actor } from '../../platform/identity.ts';
import type { Processes } from '../../platform/processes.ts';
import { registerVolumeRoutes } from './volume.routes.ts';
import { createVolumes } from './volume.service.ts';
import { attachToPod, detachVolume, volumesOfPods } from './volume-attachment.ts';
import { createVolumeCleanup, createVolumeRepositories } from './volume-repository.ts';
import { createVolumeSync } from './volume-sync.ts';

const DEFAULT_LIMIT_BYTES = 20 * 1024 ** 3;
const CLEANUP_INTERVAL_MS = 60_000;

/**
 * Composes the parts; starts no job and registers no route. Without a storage, volumes cannot be created; existing
 * volumes are listed.
 */
export function createVolumeParts(
  { ports, options, trust }: CentralDeps,
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

  async function cleanUpOnce(): Promise<void> {
    if (trust.isSuspect()) return;
    await sync.abandonSilent();
    await cleanUp();
  }

  return {
    /** Functions that pods call in their transactions. */
    ofPods: {
      volumesOfPods,
      attachVolume: (tx: Db, pod: Pod, volumeId: string, actor: Actor) =>
        attachToPod(tx, { clock, random }, { pod, volumeId, actor }),
      detachVolume: (tx: Db, podId: string) => detachVolume(tx, { clock, random }, podId),
      /** Part of the pod sync. */
      volumes: sync,
    },

    /** Registers the routes below /api. */
    register(api: HttpServer, once: OnceDeps): void {
      const limitBytes = options.volumeLimitBytes ?? DEFAULT_LIMIT_BYTES;
      const volumes = createVolumes({ ...shared, wake, limitBytes });
      registerVolumeRoutes(api, { ...once, volumes });
    },

    /** Abandons silent copies and cleans repositories once. Tests call it instead of `start`. */
    runOnce: cleanUpOnce,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: Math.max(CLEANUP_INTERVAL_MS, options.pollMs ?? 0),
        run: cleanUpOnce,
        onError: (error) =>
          log.error({ err: error }, `volume clean-up failed: ${messageOf(error)}`),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}
